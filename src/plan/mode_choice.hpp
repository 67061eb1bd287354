// When a layer is busy enough for matrix products. A pure function of the batch's own spike counts: nothing is measured
// in seconds and nothing is remembered, so a run repeats to the bit, and so does a resumed one.
#pragma once

#include <cstdint>

#include <spikeloom/configuration.hpp>

namespace spikeloom {

/// Switching points of `mode = "auto"`: input events per (row, input) above which the forward pass is dense, and the
/// mean of that and the active fraction of the layer below for the backward pass. docs/decisions/0001-auto-mode.md has
/// the measurements.
inline constexpr double kForwardDenseFrom = 0.5;
inline constexpr double kBackwardDenseFrom = 0.4;

inline bool choose_dense(EngineMode mode, double busy_fraction, double dense_from) {
  return mode == EngineMode::dense || (mode == EngineMode::automatic && busy_fraction > dense_from);
}

}  // namespace spikeloom
