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

void TileTrace::append(const TileTrace& later, std::size_t first_row) {
  std::copy(later.counts.begin(), later.counts.end(), counts.begin() + static_cast<std::ptrdiff_t>(first_row));
  const std::size_t entries = entry_start.back();
  codes.resize(entries);  // without the padding, which the other has, too
  const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  add(codes, later.codes);
  add(derivatives, later.derivatives);
  add(membranes, later.membranes);
  const auto add_starts = [](std::vector<std::size_t>& to, const std::vector<std::size_t>& from) {
    const std::size_t base = to.back();
    for (std::size_t i = 1; i < from.size(); ++i) to.push_back(base + from[i]);
  };
  add_starts(entry_start, later.entry_start);
  add_starts(active_start, later.active_start);
  add_starts(spike_start, later.spike_start);
  for (std::size_t column = 0; column < spike_counts.size(); ++column)
    spike_counts[column] += later.spike_counts[column];
}

std::size_t TileTrace::bytes() const {
  return bytes_of(counts) + bytes_of(codes) + bytes_of(derivatives) + bytes_of(membranes) + bytes_of(entry_start) +
         bytes_of(active_start) + bytes_of(spike_start) + bytes_of(spike_counts);
}

LayerState::LayerState(const LayerSpec& spec, int inputs, const LayerPlan& plan)
    : traces(plan.tiles),
      part_traces(plan.shares.size()),
      outgoing(spec),
      spec_(&spec),
      inputs_(inputs),
      width_(plan.tile_width),
      tiles_(plan.tiles),
      half_rows_(plan.half_rows),
      step_schedule_(plan.step_schedule),
      partial_budget_bytes_(plan.partial_budget_bytes),
      shares_(plan.shares),
      owners_(owners_of(plan)),
      shared_numbers_(plan.tiles, -1),
      kernels_(spec.spiking() ? &kernels::spiking_kernels(spec.neuron) : nullptr),
      window_low_(std::numeric_limits<double>::quiet_NaN()),
      weights_(tiles_ * tile_floats()),
      half_weights_(half_rows_ ? weights_.size() / 2 : 0),
      recurrent_weights_(tiles_ * block_floats(ParameterKind::recurrent_weight)),
      bias_(stride()),
      bias_gradient_(stride()),
      rate_gradient_(stride()),
      plus_infinity_(width_),
      minus_infinity_(width_) {
  for (const TileShare& share : shares_) {
    if (!share.whole() && share.first == 0) shared_numbers_[share.tile] = shared_tiles_++;
  }
  plus_infinity_.fill(kInfinity);
  minus_infinity_.fill(-kInfinity);
  neurons_.decay.assign(spec.size, 0.0f);
  for (AlignedBuffer<float>& column : columns_) column = AlignedBuffer<float>(stride());
  for (const NeuronParameter parameter : spec.learn) {
    const int kind = static_cast<int>(kind_of(parameter));
    neuron_values_[kind] = neuron_gradients_[kind] = AlignedBuffer<float>(stride());
  }
  if (learns_constants())
    constant_gradients_ = AlignedBuffer<double>(static_cast<std::size_t>(stride()) * kNeuronConstants);
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
  kernels::TileConstants constants;
  for (int i = 0; i < kNeuronConstants; ++i) constants.columns[i] = columns_[i].data() + tile * width_;
  if (listing == Listing::spikes_only) constants[NeuronConstant::window_low] = plus_infinity_.data();
  if (listing == Listing::everything) {
    constants[NeuronConstant::window_low] = minus_infinity_.data();
    constants[NeuronConstant::window_high] = plus_infinity_.data();
  }
  return constants;
}

void LayerState::set_window_low(double units_of_threshold) {
  window_low_ = units_of_threshold;
  make_constants();
}

void LayerState::make_constants() {
  const NeuronConstants<float> constants = neuron_constants<float>(*spec_, neurons_, window_low_);
  const auto padding = [](NeuronConstant which) {
    const bool bound = which == NeuronConstant::threshold || which == NeuronConstant::window_low ||
                       which == NeuronConstant::window_high;
    return bound ? kInfinity : 0.0f;
  };
  for (int i = 0; i < kNeuronConstants; ++i) {
    const std::vector<float>& values = constants.columns[i];
    std::copy(values.begin(), values.end(), columns_[i].begin());
    std::fill(columns_[i].begin() + values.size(), columns_[i].end(), padding(static_cast<NeuronConstant>(i)));
  }
  const std::vector<float>& thresholds = constants[NeuronConstant::threshold];
  same_threshold_ = std::all_of(thresholds.begin(), thresholds.end(), [&](float t) { return t == thresholds.front(); });
}

void LayerState::start_gradients(int tile) {
  std::fill_n(bias_gradient(tile), width_, 0.0f);
  const std::size_t count = static_cast<std::size_t>(width_) * kNeuronConstants;
  if (learns_constants()) std::fill_n(constant_gradients_.begin() + tile * count, count, 0.0);
}

void LayerState::add_sample_sums(int tile, const float* sums) {
  float* bias = bias_gradient(tile);
  for (int column = 0; column < width_; ++column) bias[column] += sums[column];
  if (!learns_constants()) return;
  const std::size_t count = static_cast<std::size_t>(width_) * kNeuronConstants;
  double* of_constants = constant_gradients_.data() + tile * count;
  for (std::size_t i = 0; i < count; ++i) of_constants[i] += static_cast<double>(sums[width_ + i]);
}

void LayerState::finish_gradients(int tile) {
  const int neurons = std::min(width_, spec_->size - tile * width_);
  for (int column = 0; column < neurons && learns_constants(); ++column) {
    std::array<double, kNeuronConstants> gradients;
    for (int i = 0; i < kNeuronConstants; ++i)
      gradients[i] = constant_gradients_[(static_cast<std::size_t>(tile) * kNeuronConstants + i) * width_ + column];
    for (const NeuronParameter parameter : spec_->learn) {
      neuron_gradient(kind_of(parameter), tile)[column] = static_cast<float>(
          parameter_gradient(*spec_, neurons_, static_cast<std::size_t>(tile * width_ + column), gradients, parameter));
    }
  }
}

void LayerState::keep_limits(int tile) {
  const int neurons = std::min(width_, spec_->size - tile * width_);
  for (const NeuronParameter parameter : spec_->learn) {
    const Range limits = limits_of(*spec_, parameter);
    float* own = values(kind_of(parameter), tile);
    for (int column = 0; column < neurons; ++column) {
      own[column] = std::clamp(own[column], static_cast<float>(limits.low), static_cast<float>(limits.high));
      neurons_.of(parameter)[tile * width_ + column] = own[column];
    }
  }
}

void LayerState::import_parameters(const LayerParameters& parameters) {
  if (parameters.decay.size() != static_cast<std::size_t>(spec_->size))
    throw InternalError("parameters of layer " + spec_->name + " have the wrong size");
  neurons_ = {};
  for (const NeuronParameter parameter : kNeuronParameters) {
    std::vector<float>& own = neurons_.of(parameter) = parameters.of(parameter);
    if (own.empty() && spec_->learns(parameter))
      own.assign(spec_->size, static_cast<float>(spec_->initial(parameter).mean()));
  }
  weights_.fill(0.0f);
  recurrent_weights_.fill(0.0f);
  bias_.fill(0.0f);
  for (const ParameterKind kind : kParameterKinds) {
    const std::vector<float>& canonical = kind < ParameterKind::decay ? parameters.of(kind) : neurons_.of(kind);
    const bool given =
        kind < ParameterKind::decay ? kind == ParameterKind::weight || !canonical.empty() : has_parameter(*spec_, kind);
    if (!given) continue;
    std::vector<float*> blocks;
    for (int tile = 0; tile < tiles_; ++tile) blocks.push_back(values(kind, tile));
    from_canonical(kind, canonical, blocks);
  }
  for (int tile = 0; tile < tiles_; ++tile) round_weights(tile, 0, inputs_);
  outgoing.set_delays(parameters.delay);
  make_constants();
}

LayerParameters LayerState::export_parameters() const {
  LayerParameters parameters = neurons_;
  for (const ParameterKind kind : kParameterKinds) {
    if (kind >= ParameterKind::decay || !has_parameter(*spec_, kind)) continue;
    std::vector<const float*> blocks;
    for (int tile = 0; tile < tiles_; ++tile) blocks.push_back(const_cast<LayerState*>(this)->values(kind, tile));
    parameters.of(kind) = to_canonical(kind, blocks);
  }
  parameters.delay = outgoing.delays();
  return parameters;
}

std::size_t LayerState::rows_of(ParameterKind parameter) const {
  switch (parameter) {
    case ParameterKind::weight:
      return inputs_;
    case ParameterKind::recurrent_weight:
      return spec_->recurrent ? spec_->size : 0;
    default:
      return 1;
  }
}

float* LayerState::values(ParameterKind parameter, int tile) {
  switch (parameter) {
    case ParameterKind::weight:
      return weights(tile);
    case ParameterKind::recurrent_weight:
      return recurrent_weights(tile);
    case ParameterKind::bias:
      return bias(tile);
    default:
      return neuron_values_[static_cast<int>(parameter)].data() + tile * width_;
  }
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
