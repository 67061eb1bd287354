// Learning rate and surrogate window over the steps of a run: functions of the step and a small state, so that a
// resumed run goes on as it would have.
#pragma once

#include <cstdint>
#include <limits>

#include <spikeloom/configuration.hpp>

namespace spikeloom {

/// Learning rate of step `step` (from 0) of `total_steps`. `plateau_scale` multiplies it (schedule = plateau; else 1).
/// Warm-up is linear from warmup_start to 1 over warmup_steps, then: constant; cosine to final_fraction at total_steps;
/// plateau. one_cycle has a warm-up of its own, as torch's OneCycleLR: half a cosine from one_cycle_start up to 1 over
/// one_cycle_warmup of the steps, then one down to final_fraction.
double learning_rate_at(const OptimizerSpec& spec, std::int64_t step, std::int64_t total_steps, double plateau_scale);

/// State of schedule = plateau, as torch's ReduceLROnPlateau with a relative threshold of 1e-4.
struct PlateauState {
  double best = std::numeric_limits<double>::infinity();
  int epochs_without_gain = 0;
  double scale = 1.0;
  bool operator==(const PlateauState&) const = default;
};

/// The state after an epoch that ended with this loss.
PlateauState after_epoch(const OptimizerSpec& spec, PlateauState state, double loss);

/// Lower end of the surrogate windows at batch `batch` (from 0) of a run, in units of the threshold: its distance to
/// the target halves every anneal_halving batches, from anneal_start. NaN (each layer's own) once annealing is over:
/// off, or less than 1e-3 from the target, which is the lowest window_low of the spiking layers.
double window_low_at(const TrainingSpec& spec, const NetworkSpec& network, std::int64_t batch);

}  // namespace spikeloom
