// Activity on purpose: what holds a layer's mean rate at its activity_target, and what widens the window of a layer
// whose neurons get no gradient. Both are functions of the step before and a small state, so that a resumed run goes on
// as it would have.
#pragma once

#include <span>
#include <vector>

#include <spikeloom/network.hpp>

#include "engine/engine.hpp"

namespace spikeloom {

/// One number per layer each; 0, 0 and 1 where there is nothing to control.
struct ActivityState {
  std::vector<double> effort;        // sum of the errors so far, times a gain
  std::vector<double> error;         // of the last update's batches: rate / target - 1, within +-1
  std::vector<double> window_reach;  // >= 1: how many times as far below the threshold as configured the window reaches

  ActivityState() = default;
  explicit ActivityState(std::size_t layers) : effort(layers, 0.0), error(layers, 0.0), window_reach(layers, 1.0) {}
};

/// What a mean rate of 1 costs in the loss: integral and proportional control of the rate. The price grows as a
/// hyperbolic sine of the effort, since the price that holds a rate falls with the loss over orders of magnitude:
/// docs/decisions/0006.
double rate_cost_of(const LayerSpec& layer, double effort, double error);

/// Lower end of the window, in thresholds, of a layer whose reach is `reach`, while annealing asks for `annealed` (NaN:
/// for the layer's own).
double window_low_of(const LayerSpec& layer, double reach, double annealed);

/// The reach after a batch in which this fraction of the neurons was active: doubled while they are fewer than
/// rescue_active, to at most kLongestReach; else back towards 1 by a sixteenth of an octave.
double next_reach(const LayerSpec& layer, double reach, double active);
inline constexpr double kLongestReach = 1024.0;

/// Applies the state to the engine, and follows what the batches show.
class ActivityController {
 public:
  explicit ActivityController(Engine& engine) : engine_(engine) {}

  /// Before the batches of an update: sets windows and costs.
  void prepare(const ActivityState& state, double annealed_window_low);
  /// After the update: `rates` per layer over its batches. With `whole`, looks at the active sets of the last of them,
  /// `last`; a batch that is but a rest shows too few neurons.
  void observe(std::span<const double> rates, const BatchResult& last, bool whole, ActivityState& state);

 private:
  Engine& engine_;
};

}  // namespace spikeloom
