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

double error_of(const LayerSpec& layer, double rate) {
  return std::clamp(rate / layer.activity_target - 1.0, -1.0, 1.0);
}

double fraction_of_ones(const std::vector<std::uint8_t>& marks) {
  return static_cast<double>(std::count(marks.begin(), marks.end(), 1)) / static_cast<double>(marks.size());
}

}  // namespace

double rate_cost_of(const LayerSpec& layer, double effort, double error) {
  const double x = effort + kProportionalGain * error;
  return kUnitCost * (exponential(x) - exponential(-x)) / 2.0 / layer.activity_target;
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

void ActivityController::prepare(const ActivityState& state, double annealed_window_low) {
  engine_.set_window_low(annealed_window_low);
  const std::vector<LayerSpec>& layers = engine_.network().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const int layer = static_cast<int>(l);
    if (state.window_reach[l] > 1.0)
      engine_.set_window_low(layer, window_low_of(layers[l], state.window_reach[l], annealed_window_low));
    if (layers[l].activity_target > 0.0)
      engine_.set_rate_cost(layer, rate_cost_of(layers[l], state.effort[l], state.error[l]));
  }
}

void ActivityController::observe(std::span<const double> rates, const BatchResult& last, bool whole,
                                 ActivityState& state) {
  const std::vector<LayerSpec>& layers = engine_.network().layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerSpec& layer = layers[l];
    if (layer.activity_target > 0.0) {
      state.error[l] = error_of(layer, rates[l]);
      state.effort[l] = std::clamp(state.effort[l] + kIntegralGain * state.error[l], -kMostEffort, kMostEffort);
    }
    if (layer.rescue_active > 0.0 && whole)
      state.window_reach[l] = next_reach(layer, state.window_reach[l], fraction_of_ones(last.layers[l].were_active));
  }
}

}  // namespace spikeloom
