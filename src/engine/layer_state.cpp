#include "engine/layer_state.hpp"

#include <algorithm>
#include <limits>

#include <spikeloom/error.hpp>
#include "network/neuron_constants.hpp"

namespace spikeloom {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

}  // namespace

void TileTrace::clear(std::size_t rows, int width) {
  counts.resize(rows);
  codes.clear();
  derivatives.clear();
  membranes.clear();
  entry_start.assign(1, 0);
  active_start.assign(1, 0);
  spike_start.assign(1, 0);
  spike_counts.assign(width, 0);
}

std::size_t TileTrace::bytes() const {
  return bytes_of(counts) + bytes_of(codes) + bytes_of(derivatives) + bytes_of(membranes) + bytes_of(entry_start) +
         bytes_of(active_start) + bytes_of(spike_start) + bytes_of(spike_counts);
}

LayerState::LayerState(const LayerSpec& spec, int inputs, const LayerPlan& plan)
    : traces(plan.tiles),
      outgoing(spec),
      spec_(&spec),
      inputs_(inputs),
      width_(plan.tile_width),
      tiles_(plan.tiles),
      half_rows_(plan.half_rows),
      step_schedule_(plan.step_schedule),
      owners_(plan.worker_of_tile),
      window_low_(std::numeric_limits<double>::quiet_NaN()),
      weights_(tiles_ * tile_floats()),
      half_weights_(half_rows_ ? weights_.size() / 2 : 0),
      recurrent_weights_(tiles_ * block_floats(ParameterKind::recurrent_weight)),
      bias_(stride()),
      bias_gradient_(stride()),
      rate_gradient_(stride()),
      plus_infinity_(width_),
      minus_infinity_(width_) {
  plus_infinity_.fill(kInfinity);
  minus_infinity_.fill(-kInfinity);
  decay_.assign(spec.size, 0.0f);
  for (auto* columns :
       {&decay_columns_, &gain_, &threshold_, &spiked_slope_, &spiked_offset_, &window_low_columns_, &window_high_}) {
    *columns = AlignedBuffer<float>(stride());
  }
  set_window_low(window_low_);
}

SpikeRows LayerState::sent_spikes() const {
  if (!outgoing.changes()) return spikes.view(size());
  SpikeRows rows = outgoing.spikes().view(size());
  rows.value = outgoing.value();
  return rows;
}

float* LayerState::kept_gradient(int tile) {
  if (kept_gradient_.empty()) kept_gradient_ = AlignedBuffer<float>(weights_.size());
  return kept_gradient_.data() + tile * tile_floats();
}

float* LayerState::kept_recurrent_gradient(int tile) {
  if (!recurrent()) return nullptr;
  if (kept_recurrent_gradient_.empty()) kept_recurrent_gradient_ = AlignedBuffer<float>(recurrent_weights_.size());
  return kept_recurrent_gradient_.data() + tile * block_floats(ParameterKind::recurrent_weight);
}

void LayerState::round_weights(int tile, int first, int count) {
  if (!half_rows_) return;
  const std::size_t at = static_cast<std::size_t>(first) * width_;
  kernels::round_rows(width_, weights(tile) + at, count, half_weights_.data() + (tile * tile_floats() + at) / 2);
}

kernels::TileConstants LayerState::constants(int tile, Listing listing) const {
  const int at = tile * width_;
  const float* low = window_low_columns_.data() + at;
  const float* high = window_high_.data() + at;
  if (listing == Listing::spikes_only) low = plus_infinity_.data();
  if (listing == Listing::everything) low = minus_infinity_.data(), high = plus_infinity_.data();
  return {decay_columns_.data() + at,
          gain_.data() + at,
          threshold_.data() + at,
          spiked_slope_.data() + at,
          spiked_offset_.data() + at,
          low,
          high};
}

void LayerState::set_window_low(double units_of_threshold) {
  window_low_ = units_of_threshold;
  const NeuronConstants<float> constants = neuron_constants<float>(*spec_, decay_, window_low_);
  const auto fill = [&](AlignedBuffer<float>& columns, const std::vector<float>& values, float padding) {
    std::copy(values.begin(), values.end(), columns.begin());
    std::fill(columns.begin() + values.size(), columns.end(), padding);
  };
  fill(decay_columns_, constants.decay, 0.0f);
  fill(gain_, constants.gain, 0.0f);
  fill(threshold_, constants.threshold, kInfinity);
  fill(spiked_slope_, constants.spiked_slope, 0.0f);
  fill(spiked_offset_, constants.spiked_offset, 0.0f);
  fill(window_low_columns_, constants.window_low, kInfinity);
  fill(window_high_, constants.window_high, kInfinity);
}

void LayerState::import_parameters(const LayerParameters& parameters) {
  if (parameters.decay.size() != static_cast<std::size_t>(spec_->size))
    throw InternalError("parameters of layer " + spec_->name + " have the wrong size");
  weights_.fill(0.0f);
  recurrent_weights_.fill(0.0f);
  bias_.fill(0.0f);
  for (const ParameterKind kind : kParameterKinds) {
    const std::vector<float>& canonical = parameters.of(kind);
    if (canonical.empty() && kind != ParameterKind::weight) continue;
    std::vector<float*> blocks;
    for (int tile = 0; tile < tiles_; ++tile) blocks.push_back(values(kind, tile));
    from_canonical(kind, canonical, blocks);
  }
  for (int tile = 0; tile < tiles_; ++tile) round_weights(tile, 0, inputs_);
  decay_ = parameters.decay;
  outgoing.set_delays(parameters.delay);
  set_window_low(window_low_);
}

LayerParameters LayerState::export_parameters() const {
  LayerParameters parameters;
  for (const ParameterKind kind : kParameterKinds) {
    if (!has_parameter(*spec_, kind)) continue;
    std::vector<const float*> blocks;
    for (int tile = 0; tile < tiles_; ++tile) blocks.push_back(const_cast<LayerState*>(this)->values(kind, tile));
    parameters.of(kind) = to_canonical(kind, blocks);
  }
  parameters.decay = decay_;
  parameters.delay = outgoing.delays();
  return parameters;
}

std::size_t LayerState::rows_of(ParameterKind parameter) const {
  switch (parameter) {
    case ParameterKind::weight:
      return inputs_;
    case ParameterKind::recurrent_weight:
      return spec_->recurrent ? spec_->size : 0;
    case ParameterKind::bias:
      return 1;
  }
  throw InternalError("unknown parameter");
}

float* LayerState::values(ParameterKind parameter, int tile) {
  switch (parameter) {
    case ParameterKind::weight:
      return weights(tile);
    case ParameterKind::recurrent_weight:
      return recurrent_weights(tile);
    case ParameterKind::bias:
      return bias(tile);
  }
  throw InternalError("unknown parameter");
}

std::vector<float> LayerState::to_canonical(ParameterKind parameter, std::span<const float* const> tiles) const {
  const std::size_t rows = rows_of(parameter);
  std::vector<float> canonical(spec_->size * rows);
  for (std::size_t neuron = 0; neuron < static_cast<std::size_t>(spec_->size); ++neuron) {
    const float* tile = tiles[neuron / width_] + neuron % width_;
    for (std::size_t input = 0; input < rows; ++input) canonical[neuron * rows + input] = tile[input * width_];
  }
  return canonical;
}

void LayerState::from_canonical(ParameterKind parameter, std::span<const float> canonical,
                                std::span<float* const> tiles) const {
  const std::size_t rows = rows_of(parameter);
  if (canonical.size() != spec_->size * rows)
    throw InternalError(std::string(name_of(parameter)) + " of layer " + spec_->name + " has the wrong size");
  for (std::size_t neuron = 0; neuron < static_cast<std::size_t>(spec_->size); ++neuron) {
    float* tile = tiles[neuron / width_] + neuron % width_;
    for (std::size_t input = 0; input < rows; ++input) tile[input * width_] = canonical[neuron * rows + input];
  }
}

}  // namespace spikeloom
