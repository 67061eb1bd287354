#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "core/elementary.hpp"

namespace spikeloom {
namespace {

/// From `from` at progress 0 to `to` at progress 1 along half a cosine.
double half_cosine(double from, double to, double progress) {
  return to + (from - to) * (1.0 + cosine_of_half_turns(std::clamp(progress, 0.0, 1.0))) / 2.0;
}

double one_cycle_factor(const OptimizerSpec& spec, double step, double total) {
  const double peak = spec.one_cycle_warmup * total - 1.0;
  const double end = total - 1.0;
  if (step <= peak) return peak > 0.0 ? half_cosine(spec.one_cycle_start, 1.0, step / peak) : 1.0;
  const double start = std::max(peak, 0.0);
  return end > start ? half_cosine(1.0, spec.final_fraction, (step - start) / (end - start)) : 1.0;
}

}  // namespace

double learning_rate_at(const OptimizerSpec& spec, std::int64_t step, std::int64_t total_steps, double plateau_scale) {
  const auto s = static_cast<double>(step);
  const auto total = static_cast<double>(total_steps);
  if (spec.schedule == ScheduleKind::one_cycle) return spec.learning_rate * one_cycle_factor(spec, s, total);
  double factor = 1.0;
  if (step < spec.warmup_steps) {
    factor = spec.warmup_start + (1.0 - spec.warmup_start) * s / spec.warmup_steps;
  } else if (spec.schedule == ScheduleKind::cosine) {
    factor = half_cosine(1.0, spec.final_fraction, (s - spec.warmup_steps) / std::max(1.0, total - spec.warmup_steps));
  }
  if (spec.schedule == ScheduleKind::plateau) factor *= plateau_scale;
  return spec.learning_rate * factor;
}

PlateauState after_epoch(const OptimizerSpec& spec, PlateauState state, double loss) {
  if (loss < state.best * (1.0 - 1e-4)) {
    state.best = loss;
    state.epochs_without_gain = 0;
  } else if (++state.epochs_without_gain > spec.plateau_patience) {
    state.scale *= spec.plateau_factor;
    state.epochs_without_gain = 0;
  }
  return state;
}

double window_low_at(const TrainingSpec& spec, const NetworkSpec& network, std::int64_t batch) {
  constexpr double kOver = std::numeric_limits<double>::quiet_NaN();
  double target = std::numeric_limits<double>::infinity();
  for (const LayerSpec& layer : network.layers) {
    if (layer.spiking() && std::isfinite(layer.surrogate.window_low))
      target = std::min(target, layer.surrogate.window_low);
  }
  if (!spec.anneal_window || !std::isfinite(target) || spec.anneal_start >= target) return kOver;
  constexpr double kLn2 = 0.69314718055994530942;
  const double distance =
      (target - spec.anneal_start) * exponential(-kLn2 * static_cast<double>(batch) / spec.anneal_halving);
  return distance < 1e-3 ? kOver : target - distance;
}

}  // namespace spikeloom
