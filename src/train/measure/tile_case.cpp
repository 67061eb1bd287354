#include "train/measure/tile_case.hpp"

#include <cmath>

#include "core/random.hpp"

namespace spikeloom::measure {
namespace {

constexpr double kDecay = 0.95;

LayerSpec lif(int size) {
  LayerSpec spec;
  spec.name = "measured";
  spec.size = size;
  spec.membrane.decay_given = true;
  spec.membrane.decay = {kDecay, kDecay};
  return spec;
}

}  // namespace

SpikeLists random_spikes(int samples, int steps, int neurons, double per_row, std::uint64_t number) {
  SpikeLists lists;
  RandomStream random(1, "measured spikes", number);
  const double probability = std::min(per_row / neurons, 0.999);
  const double log_miss = std::log1p(-probability);
  const std::size_t rows = static_cast<std::size_t>(samples) * steps;
  lists.offsets.assign(rows + 1, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    // The gap to the next spike is geometric.
    for (double id = -1.0; probability > 0.0;) {
      id += 1.0 + std::floor(std::log1p(-random.uniform()) / log_miss);
      if (id >= neurons) break;
      lists.ids.push_back(static_cast<std::uint32_t>(id));
    }
    lists.offsets[row + 1] = static_cast<std::uint32_t>(lists.ids.size());
  }
  return lists;
}

TileCase::TileCase(int width, int tiles, int inputs, int samples, double events_per_step, double deviation, bool half)
    : spec_(lif(width * tiles)),
      layer_(spec_, inputs, LayerPlan{width, tiles, share_tiles(tiles, 1, false), half}),
      input_(random_spikes(samples, kSteps, inputs, events_per_step, 0)),
      delta_(static_cast<std::size_t>(samples) * kSteps * width) {
  LayerParameters parameters;
  RandomStream random(2, "measured weights");
  const double scale = deviation * std::sqrt((1.0 - kDecay * kDecay) / std::max(events_per_step, 1.0));
  parameters.weight.resize(static_cast<std::size_t>(spec_.size) * inputs);
  // Sums of four uniform numbers: near enough to normal ones, and quick to draw.
  for (float& weight : parameters.weight) {
    const std::uint32_t bits = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32));
    const int sum = static_cast<int>((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)) - 510;
    weight = static_cast<float>(scale * sum / 147.8);
  }
  parameters.bias.assign(spec_.size, 0.0f);
  parameters.decay.assign(spec_.size, static_cast<float>(kDecay));
  layer_.import_parameters(parameters);
  for (std::size_t i = 0; i < delta_.size(); ++i) delta_[i] = 1e-3f * static_cast<float>(i % 1021) - 0.5f;
  if (half) {
    half_delta_ = AlignedBuffer<kernels::Bf16Pair>(delta_.size() / 2);
    kernels::round_rows(width, delta_.data(), delta_.size() / width, half_delta_.data());
  }
  context_ = {samples, kSteps, &team_, &scratch_, &shared_, &plan_};
}

void TileCase::forward_tile(int tile) {
  layer_.traces[tile].clear(context_.rows(), layer_.width());
  for (int sample = 0; sample < context_.samples; ++sample) {
    const std::size_t first_row = static_cast<std::size_t>(sample) * kSteps;
    forward_sample(layer_, tile, layer_.input_of(tile, input(), first_row), Listing::active, kSteps, scratch(),
                   layer_.traces[tile]);
  }
}

void TileCase::forward_all() {
  for (int tile = 0; tile < layer_.tiles(); ++tile) forward_tile(tile);
  merge_spikes(layer_, context_);
}

void TileCase::list_active() {
  merge_active(layer_, context_, layer_.active);
  prepare_spike_gradient(layer_);
}

void TileCase::delta_tile() {
  const int range = std::max(1, plan_.delta_rows / kSteps);
  const std::size_t sample_floats = static_cast<std::size_t>(kSteps) * layer_.width();
  scratch().rows.reserve_discard(range * sample_floats);
  if (layer_.half_rows()) scratch().half_rows.reserve_discard(range * sample_floats / 2);
  for (int sample = 0; sample < context_.samples; ++sample) {
    const std::size_t at = sample % range * sample_floats;
    const bool half = layer_.half_rows();
    add_delta_of_sample(layer_, 0, sample, input(), scratch().rows.data() + (half ? 0 : at), layer_.width(), context_,
                        scratch(), half ? scratch().half_rows.data() + at / 2 : nullptr);
  }
}

double TileCase::entries() const {
  double entries = 0.0;
  for (const TileTrace& trace : layer_.traces) entries += static_cast<double>(trace.entry_start.back());
  return entries;
}

std::size_t TileCase::active() const {
  std::size_t active = 0;
  for (const TileTrace& trace : layer_.traces) active += trace.active_start.back();
  return active;
}

}  // namespace spikeloom::measure
