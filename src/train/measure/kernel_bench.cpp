#include "train/measure/kernel_bench.hpp"

#include <algorithm>
#include <cmath>

#include <spikeloom/error.hpp>
#include "train/measure/kernel_references.hpp"
#include "train/measure/timing.hpp"

namespace spikeloom {
namespace {

using namespace measure;

constexpr int kWidth = 64;
constexpr double kRowBytes = kWidth * sizeof(float);
constexpr int kSamples = 48;
constexpr int kSamplesOfRange = 10;  // of which delta is held at a time: 256 KB

class Bench {
 public:
  Bench(const Machine& machine, const MachineFigures& figures) : machine_(machine), figures_(figures) {}

  void tile(int inputs, double activity) {
    forward_and_delta(inputs, activity);
    weight_gradient(inputs, activity);
    input_gradient(inputs, activity);
  }
  void adam(int inputs);

  std::vector<KernelTiming> take() { return std::move(timings_); }

 private:
  void forward_and_delta(int inputs, double activity);
  void weight_gradient(int inputs, double activity);
  void input_gradient(int inputs, double activity);

  /// Where `bytes` that are used again and again stay.
  void place(KernelTiming& timing, double bytes) const {
    const bool in_l2 = bytes <= static_cast<double>(machine_.l2_bytes);
    const bool in_l3 = bytes <= static_cast<double>(machine_.l3_bytes);
    timing.level = in_l2 ? "L2" : in_l3 ? "L3" : "DRAM";
    timing.roofline = in_l2 ? figures_.l2_bandwidth : in_l3 ? figures_.l3_bandwidth : figures_.dram_bandwidth;
  }

  KernelTiming timing(const char* kernel, int inputs, double activity) const {
    KernelTiming result;
    result.kernel = kernel;
    result.inputs = inputs;
    result.activity = activity;
    result.active_fraction = 2.0 * activity;
    return result;
  }

  void add(KernelTiming timing, bool right) {
    if (!right) throw InternalError("the kernel " + timing.kernel + " gives another result than a plain loop");
    timings_.push_back(std::move(timing));
  }

  const Machine& machine_;
  const MachineFigures& figures_;
  std::vector<KernelTiming> timings_;
};

/// A deviation of the membranes at which about `wanted` of a tile's neurons are in the window.
double deviation_for(int inputs, double events, double wanted) {
  double low = 0.05, high = 20.0;
  for (int i = 0; i < 8; ++i) {
    const double middle = std::sqrt(low * high);
    TileCase tile(kWidth, 1, inputs, 4, events, middle);
    tile.forward_tile();
    (tile.entries() < wanted * kWidth * tile.rows() ? low : high) = middle;
  }
  return low;
}

void Bench::forward_and_delta(int inputs, double activity) {
  const double events = activity * inputs;
  TileCase tile(kWidth, 1, inputs, kSamples, events, deviation_for(inputs, events, 2.0 * activity));
  KernelTiming forward = timing("forward_spiking", inputs, activity);
  forward.ns = best_ns([&] { tile.forward_tile(); });
  forward.rows = tile.rows();
  forward.events = tile.events();
  forward.bytes = forward.events * kRowBytes;
  place(forward, inputs * kRowBytes);
  add(forward, forward_is_right(tile));

  constexpr float kSpikeGradient = 1e-3f;
  prepare_spike_gradient(tile.layer());
  std::fill(tile.layer().traces[0].spike_gradient.begin(), tile.layer().traces[0].spike_gradient.end(), kSpikeGradient);
  KernelTiming delta = timing("backward_spiking", inputs, activity);
  delta.ns = best_ns([&] { tile.delta_tile(); });
  delta.rows = tile.rows();
  delta.events = tile.entries();
  delta.bytes = 3.0 * delta.rows * kRowBytes;  // rows of zeros, read again, written again
  place(delta, kSamplesOfRange * kSteps * kRowBytes);
  const float* last = tile.scratch().rows.data() + (kSamples - 1) % kSamplesOfRange * kSteps * kWidth;
  add(delta, delta_is_right(tile, last, kSpikeGradient));
}

void Bench::weight_gradient(int inputs, double activity) {
  TileCase tile(kWidth, 1, inputs, kSamplesOfRange, activity * inputs, 0.01);
  const std::vector<SampleRange> ranges = ranges_of({0, kSamplesOfRange}, kSamplesOfRange);
  std::vector<TransposedEvents> events;
  transpose_events(tile.input(), kSteps, ranges, tile.team(), events);
  AlignedBuffer<float> gradient(tile.layer().tile_floats());
  const auto run = [&] {
    kernels::weight_gradient(kWidth, events[0].starts.data(), events[0].event_rows.data(), 0,
                             static_cast<std::uint32_t>(inputs), tile.delta(), kernels::Gradient::add, gradient.data());
  };
  run();
  const bool right = weight_gradient_is_right(tile, events[0], gradient.data());
  KernelTiming result = timing("weight_gradient", inputs, activity);
  result.ns = best_ns(run);
  result.rows = tile.rows();
  result.events = tile.events();
  double touched = 0.0;
  for (int input = 0; input < inputs; ++input) touched += events[0].starts[input] != events[0].starts[input + 1];
  result.bytes = (result.events + 2.0 * touched) * kRowBytes;
  place(result, (inputs + kSamplesOfRange * kSteps) * kRowBytes);
  add(result, right);
}

void Bench::input_gradient(int inputs, double activity) {
  TileCase tile(kWidth, 1, inputs, kSamples, 0.0, 0.4);
  const SpikeLists active = random_spikes(kSamples, kSteps, inputs, 2.0 * activity * inputs, 1);
  AlignedBuffer<float> out(active.ids.size() + 16);
  KernelTiming result = timing("input_gradient", inputs, activity);
  result.ns = best_ns([&] {
    kernels::input_gradient(kWidth, tile.layer().weights(0), tile.delta(), kWidth, tile.context().rows(),
                            active.offsets.data(), active.ids.data(), out.data());
  });
  result.rows = tile.rows();
  result.events = static_cast<double>(active.ids.size());
  result.bytes = (result.events + result.rows) * kRowBytes + result.events * sizeof(float);
  place(result, inputs * kRowBytes);
  add(result, input_gradient_is_right(tile, active, out.data()));
}

void Bench::adam(int inputs) {
  const std::size_t count = static_cast<std::size_t>(inputs) * kWidth;
  AlignedBuffer<float> value(count), gradient(count), first(count), second(count);
  for (std::size_t i = 0; i < count; ++i) {
    value[i] = 0.01f * static_cast<float>(i % 13) - 0.05f, gradient[i] = 1e-3f * static_cast<float>(i % 7) - 3e-3f;
    first[i] = 1e-4f * static_cast<float>(i % 5), second[i] = 1e-6f * static_cast<float>(i % 11);
  }
  const AlignedBuffer<float> old_value = value, old_first = first, old_second = second;
  const AdamStep step;
  const auto run = [&] { adam_step(step, value.data(), gradient.data(), first.data(), second.data(), count); };
  run();
  bool right = true;
  for (std::size_t i = 0; i < count; ++i)
    right = right && adam_is_right(step, old_value[i], gradient[i], old_first[i], old_second[i], value[i]);
  KernelTiming result = timing("adam_step", inputs, 0.0);
  result.active_fraction = 0.0;
  result.ns = best_ns(run);
  result.events = static_cast<double>(count);
  result.bytes = 7.0 * sizeof(float) * result.events;  // reads four numbers, writes three
  place(result, 4.0 * sizeof(float) * result.events);
  add(result, right);
}

}  // namespace

std::vector<KernelTiming> bench_kernels(const Machine& machine, const MachineFigures& figures) {
  Bench bench(machine, figures);
  for (const int inputs : {256, 1024, 2312}) {
    for (const double activity : {0.01, 0.02, 0.05}) bench.tile(inputs, activity);
    bench.adam(inputs);
  }
  return bench.take();
}

}  // namespace spikeloom
