// What the kernels of a tile cost, by events, by entries and by the bytes that they read.
#include <cmath>

#include "kernels/kernels.hpp"
#include "train/measure/parts.hpp"
#include "train/measure/tile_case.hpp"
#include "train/measure/timing.hpp"

namespace spikeloom::measure {
namespace {

// Enough rows that the branch predictor can't learn them by heart from one repetition to the next.
constexpr int kSamples = 30;
// Inputs of the measured tile: 256 KB of weights at a width of 64, within every L2 that we know.
constexpr int kInputs = 1024;
constexpr double kQuiet = 0.01;

void add(Curve& curve, double x, double y) {
  // Noise must not turn a cost negative, nor two points into one.
  if (!curve.x.empty() && x <= curve.x.back()) return;
  curve.x.push_back(x), curve.y.push_back(std::max(y, 0.0));
}

double forward_ns(TileCase& tile) {
  return best_ns([&] { tile.forward_tile(); }) / tile.rows();
}

void measure_forward(int width, bool half, TileCosts& costs) {
  TileCase silent(width, 1, kInputs, kSamples, 0.0, kQuiet, half);
  const double bare = forward_ns(silent);
  add(costs.forward_rows, 0.0, 0.0);
  for (const double events : {1.0, 4.0, 16.0, 64.0, 256.0}) {
    TileCase tile(width, 1, kInputs, kSamples, events, kQuiet, half);
    add(costs.forward_rows, tile.events() / tile.rows(), forward_ns(tile) - bare);
  }
  add(costs.forward_step, 0.0, bare);
  constexpr double kEvents = 16.0;
  TileCase quiet(width, 1, kInputs, kSamples, kEvents, kQuiet, half);
  const double quiet_ns = forward_ns(quiet);
  for (const double deviation : {0.4, 0.6, 1.2, 4.0}) {
    TileCase tile(width, 1, kInputs, kSamples, kEvents, deviation, half);
    const double ns = forward_ns(tile);
    add(costs.forward_step, tile.entries() / tile.rows(), bare + std::max(0.0, ns - quiet_ns));
  }
}

void measure_delta(int width, bool half, TileCosts& costs) {
  for (const double deviation : {kQuiet, 0.4, 0.6, 1.2, 4.0}) {
    TileCase tile(width, 1, kInputs, kSamples, 16.0, deviation, half);
    tile.forward_tile();
    prepare_spike_gradient(tile.layer());
    for (float& value : tile.layer().traces[0].spike_gradient) value = 1e-3f;
    add(costs.delta_step, tile.entries() / tile.rows(), best_ns([&] { tile.delta_tile(); }) / tile.rows());
  }
}

/// The weight gradient of some ranges of rows, nanoseconds per input and range.
double weight_ns(int width, bool half, int samples_of_range, double events_per_step) {
  const int samples = std::max(20, samples_of_range);
  TileCase tile(width, 1, kInputs, samples, events_per_step, kQuiet, half);
  const std::vector<SampleRange> ranges = ranges_of({0, samples}, samples_of_range);
  std::vector<TransposedEvents> events;
  transpose_events(tile.input(), kSteps, ranges, tile.team(), events);
  AlignedBuffer<float> gradient(tile.layer().tile_floats());
  const double ns = best_ns([&] {
    const auto add_up = [&](const auto* delta) {
      for (const TransposedEvents& range : events) {
        kernels::weight_gradient(width, range.starts.data(), range.event_rows.data(), 0, kInputs, delta,
                                 kernels::Gradient::add, gradient.data());
      }
    };
    half ? add_up(tile.half_delta()) : add_up(tile.delta());
  });
  return ns / kInputs / static_cast<double>(ranges.size());
}

void measure_weights(int width, bool half, TileCosts& costs) {
  constexpr int kSamplesOfRange = 10;  // 1000 rows, as in the engine
  for (const double per_input : {0.0, 1.0, 4.0, 16.0, 64.0, 256.0})
    add(costs.weight_rows, per_input,
        weight_ns(width, half, kSamplesOfRange, per_input * kInputs / (kSamplesOfRange * kSteps)));
}

double input_ns(TileCase& tile, const SpikeLists& active, AlignedBuffer<float>& out) {
  const int width = tile.layer().width();
  const double ns = best_ns([&] {
    const auto multiply = [&](const auto* weights, const auto* delta) {
      kernels::input_gradient(width, weights, delta, tile.context().rows(), active.offsets.data(), active.ids.data(),
                              out.data());
    };
    tile.layer().half_rows() ? multiply(tile.layer().half_weights(0), tile.half_delta())
                             : multiply(tile.layer().weights(0), tile.delta());
  });
  return ns / tile.rows();
}

double input_ns(int width, bool half, int inputs, double active_per_step) {
  TileCase tile(width, 1, inputs, kSamples, 0.0, kQuiet, half);
  const SpikeLists active = random_spikes(kSamples, kSteps, inputs, active_per_step, 1);
  AlignedBuffer<float> out(active.ids.size() + 16);
  return input_ns(tile, active, out);
}

void measure_inputs(int width, bool half, TileCosts& costs) {
  for (const double active : {0.0, 1.0, 4.0, 16.0, 64.0, 256.0})
    add(costs.input_rows, active, input_ns(width, half, kInputs, active));
}

double membrane_ns(int width) {
  TileCase tile(width, 1, 64, kSamples, 0.0, kQuiet);
  AlignedBuffer<float> rows(tile.context().rows() * width);
  const double ns = best_ns([&] {
    for (int sample = 0; sample < kSamples; ++sample) {
      const std::size_t first = static_cast<std::size_t>(sample) * kSteps;
      kernels::forward_membrane(width, tile.layer().input_of(0, tile.input(), first), tile.layer().constants(0), kSteps,
                                rows.data() + first * width, width);
      kernels::backward_membrane(width, tile.layer().constants(0), kSteps, rows.data() + first * width, width,
                                 tile.layer().bias_gradient(0));
    }
  });
  return ns / tile.rows();
}

/// What reading from farther away than L2 costs: measured at one density, used as a factor at all.
void measure_factors(const Machine& machine, bool half, TileCosts& costs) {
  constexpr int kWidth = 64;
  constexpr double kEvents = 32.0;
  const double bytes_of_input = kWidth * (half ? 2.0 : sizeof(float));
  const double l2 = machine.l2_bytes ? static_cast<double>(machine.l2_bytes) : 1e6;
  const auto rows_ns = [&](int inputs) {
    TileCase silent(kWidth, 1, inputs, kSamples, 0.0, kQuiet, half),
        tile(kWidth, 1, inputs, kSamples, kEvents, kQuiet, half);
    return forward_ns(tile) - forward_ns(silent);
  };
  const double base = rows_ns(kInputs);
  const double base_inputs = input_ns(kWidth, half, kInputs, kEvents);
  for (const double share : {0.125, 0.35, 0.7, 1.5, 4.0}) {
    const int inputs = std::max(64, static_cast<int>(share * l2 / bytes_of_input));
    add(costs.forward_factor, inputs * bytes_of_input, inputs < kInputs ? 1.0 : rows_ns(inputs) / base);
    add(costs.input_factor, inputs * bytes_of_input,
        inputs < kInputs ? 1.0 : input_ns(kWidth, half, inputs, kEvents) / base_inputs);
  }
  constexpr double kPerInput = 20.0;
  const double base_weights = weight_ns(kWidth, half, 10, kPerInput * kInputs / (10 * kSteps));
  add(costs.weight_factor, 10 * kSteps * bytes_of_input, 1.0);
  for (const double share : {0.35, 0.7, 1.5, 4.0}) {
    const int samples = static_cast<int>(share * l2 / bytes_of_input / kSteps);
    add(costs.weight_factor, samples * kSteps * bytes_of_input,
        weight_ns(kWidth, half, samples, kPerInput * kInputs / (samples * kSteps)) / base_weights);
  }
}

}  // namespace

void measure_tiles(const Machine& machine, MachineFigures& figures) {
  const auto measure = [](int width, bool half, TileCosts& costs) {
    measure_forward(width, half, costs);
    measure_delta(width, half, costs);
    measure_weights(width, half, costs);
    measure_inputs(width, half, costs);
    costs.membrane_step_ns = membrane_ns(width);
  };
  // The factors of the widest tile stand for all: they are functions of bytes.
  const auto measure_all = [&](const auto& widths, bool half, auto& tiles) {
    measure_factors(machine, half, tiles.back());
    for (std::size_t i = 0; i < widths.size(); ++i) {
      measure(widths[i], half, tiles[i]);
      tiles[i].forward_factor = tiles.back().forward_factor;
      tiles[i].weight_factor = tiles.back().weight_factor;
      tiles[i].input_factor = tiles.back().input_factor;
    }
  };
  measure_all(kTileWidths, false, figures.tiles);
  measure_all(kHalfTileWidths, true, figures.half_tiles);
}

}  // namespace spikeloom::measure
