#include "train/activity_control.hpp"

#include <algorithm>
#include <cmath>

#include "core/elementary.hpp"

namespace spikeloom {
namespace {

// Price in the loss of a rate at the target while the effort is small. A cross-entropy starts at ln(classes) and ends
// at hundredths.
constexpr double kUnitCost = 0.01;
// With an error of 1 (twice the target or more) the price is e times as high after 20 updates.
constexpr double kIntegralGain = 0.05;
// The error itself counts as much as 20 updates of it: without, the rate swings about the target.
constexpr double kProportionalGain = 1.0;
constexpr double kMostEffort = 10.0;
// Share of the threshold by which an error of 1 moves it in an update.
constexpr double kThresholdGain = 0.02;

double error_of(const LayerSpec& layer, double rate) {
  return std::clamp(rate / layer.activity_target - 1.0, -1.0, 1.0);
}

bool has(const LayerSpec& layer, ActivityControl control) {
  return layer.activity_target > 0.0 && layer.activity_control == control;
}

}  // namespace

double rate_cost_of(const LayerSpec& layer, double effort, double error) {
  const double x = effort + kProportionalGain * error;
  return kUnitCost * (exponential(x) - exponential(-x)) / 2.0 / layer.activity_target;
}

double bias_shift_of(const LayerSpec& layer, double error) {
  // A bias adds up in the membrane to b k / (1 - alpha).
  const double decay = layer.membrane.decay.mean();
  const double per_threshold =
      (layer.input_scaling == InputScaling::leak ? 1.0 : std::max(1.0 - decay, 1e-3)) / layer.input_gain;
  return -kThresholdGain * error * layer.threshold.mean() * per_threshold;
}

double window_low_of(const LayerSpec& layer, double reach, double annealed) {
  const double own = layer.surrogate.window_low;
  const double low = std::isnan(annealed) ? own : annealed;
  if (reach <= 1.0) return low;
  constexpr double kNarrowest = 0.01;  // a window from the threshold up has a distance of 0, which no factor widens
  return std::min(low, 1.0 - reach * std::max(1.0 - own, kNarrowest));
}

double next_reach(const LayerSpec& layer, double reach, double active) {
  if (active < layer.rescue_active) return std::min(2.0 * reach, kLongestReach);
  constexpr double kBack = 0.9576032806985737;  // 2^(-1/16)
  return std::max(1.0, reach * kBack);
}

ActivityController::ActivityController(Engine& engine) : engine_(engine) {
  const std::vector<LayerSpec>& layers = engine.network().layers;
  shift_.shifts.assign(layers.size(), 0.0F);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const bool shifted = has(layers[l], ActivityControl::threshold);
    shifts_any_ |= shifted;
    shift_.sizes.push_back(layers[l].size);
    shift_.tile_width.push_back(shifted ? engine.block_size({static_cast<int>(l), 0, ParameterKind::bias}) : 0);
  }
}

void ActivityController::prepare(const ActivityState& state, double annealed_window_low) {
  engine_.set_window_low(annealed_window_low);
  const std::vector<LayerSpec>& layers = engine_.network().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const int layer = static_cast<int>(l);
    if (state.window_reach[l] > 1.0)
      engine_.set_window_low(layer, window_low_of(layers[l], state.window_reach[l], annealed_window_low));
    if (has(layers[l], ActivityControl::cost))
      engine_.set_rate_cost(layer, rate_cost_of(layers[l], state.effort[l], state.error[l]));
  }
}

ParameterUpdate& ActivityController::shifted(ParameterUpdate& update, const ActivityState& state) {
  if (!shifts_any_) return update;
  const std::vector<LayerSpec>& layers = engine_.network().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (has(layers[l], ActivityControl::threshold))
      shift_.shifts[l] = static_cast<float>(bias_shift_of(layers[l], state.error[l]));
  }
  shift_.update = &update;
  return shift_;
}

void ActivityController::BiasShift::apply(BlockId block, std::size_t first, float* values, const float* gradient,
                                          std::size_t count) {
  update->apply(block, first, values, gradient, count);
  const float shift = shifts[block.layer];
  if (block.parameter != ParameterKind::bias || shift == 0.0F) return;
  const std::size_t neuron = block.tile * tile_width[block.layer] + first;
  for (std::size_t i = 0; i < count && neuron + i < sizes[block.layer]; ++i) values[i] += shift;
}

void ActivityController::observe(std::span<const double> rates, bool whole, ActivityState& state) {
  const std::vector<LayerSpec>& layers = engine_.network().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerSpec& layer = layers[l];
    if (layer.activity_target > 0.0) {
      state.error[l] = error_of(layer, rates[l]);
      state.effort[l] = std::clamp(state.effort[l] + kIntegralGain * state.error[l], -kMostEffort, kMostEffort);
    }
    if (layer.rescue_active > 0.0 && whole)
      state.window_reach[l] = next_reach(layer, state.window_reach[l], active_fraction(static_cast<int>(l)));
  }
}

double ActivityController::active_fraction(int layer) {
  std::vector<bool> seen(engine_.network().layers[layer].size, false);
  for (const std::uint32_t id : engine_.active(layer).ids) seen[id] = true;
  return static_cast<double>(std::count(seen.begin(), seen.end(), true)) / static_cast<double>(seen.size());
}

}  // namespace spikeloom
