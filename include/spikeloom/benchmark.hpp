// Timed training steps of fixed networks on synthetic spikes: how fast this machine trains, and how much faster lists
// are than matrix products.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <spikeloom/configuration.hpp>

namespace spikeloom {

/// One of the benchmark networks: sizes from the input to the classes, and how it is trained.
struct BenchmarkNet {
  std::string name;
  std::vector<int> sizes;  // channels, hidden layers, classes
  int steps = 100;
  int batch = 48;
  double input_activity = 0.02;
  bool recurrent = false;  // its hidden layers are
};

const std::vector<BenchmarkNet>& benchmark_nets();
/// One of them by name, or one of other sizes: "784-1000-10" has 100 steps, batches of 48 and an input activity of
/// 0.02. Throws UserError naming the known nets.
BenchmarkNet benchmark_net(const std::string& name);

struct BenchmarkOptions {
  std::string net = "nmnist-mlp";
  double activity = 0.02;                // of every hidden layer: its weights are scaled until it fires so often
  std::optional<double> input_activity;  // default: the net's
  std::optional<int> batch;
  std::optional<int> steps;
  int threads = 0;
  EngineMode mode = EngineMode::sparse;
  EnginePrecision precision = EnginePrecision::fp32;
  double seconds = 3.0;  // timed for at least this long, and at least five batches
};

struct BenchmarkReport {
  int threads = 0;
  int batch = 0;
  int steps = 0;
  double samples_per_second = 0.0;  // median over batches
  double milliseconds_per_batch = 0.0;
  double cpu_milliseconds_per_batch = 0.0;  // of all threads together: what other work on the machine changes less
  double forward_ms = 0.0;                  // medians, per batch
  double backward_ms = 0.0;
  double update_ms = 0.0;
  double data_ms = 0.0;  // assembling the batch from the binned data set
  double input_activity = 0.0;
  std::vector<std::pair<std::string, double>> activity;         // per hidden layer, as measured while timing
  std::vector<std::pair<std::string, double>> active_fraction;  // neurons in the surrogate's window, likewise
  std::vector<double> losses;  // of the first 20 training steps, fewer if a slow mode was stopped before
  std::uint64_t saved_state_bytes = 0;
};

/// What run_benchmark trains on: the numbers that another program needs to compute the same thing. The first 20
/// training steps take samples [(step % 3) * batch, (step % 3 + 1) * batch) in turn.
struct BenchmarkCase {
  std::vector<int> sizes;  // as BenchmarkNet
  int steps = 0;
  int batch = 0;
  double decay = 0.0;  // of every membrane, the readout's too
  double learning_rate = 0.0;
  std::vector<std::vector<float>> weights;  // per layer (size, inputs), row-major, scaled to the wanted activity
  std::vector<std::vector<float>> recurrent_weights;  // per layer (size, size), [to][from], or empty
  std::vector<std::vector<float>> biases;             // per layer (size)
  std::vector<int> labels;                            // 3 * batch samples
  std::vector<std::uint32_t> spike_counts;            // (samples, steps): input spikes of a step
  std::vector<std::uint32_t> spike_channels;          // of all samples and steps in turn, ascending within a step
};

BenchmarkCase benchmark_case(const BenchmarkOptions& options);

/// The network, batch and engine settings that run_benchmark trains with.
Configuration benchmark_configuration(const BenchmarkOptions& options);

/// Whole training steps (forward, backward, AdamW) in this process.
BenchmarkReport run_benchmark(const BenchmarkOptions& options);

/// Samples per second that list passes could reach at most (docs/performance.md) with the batch, threads and activities
/// of `report`, by the figures kept for this machine and program. Nothing if none are kept, and in dense mode.
std::optional<double> benchmark_limit(const BenchmarkOptions& options, const BenchmarkReport& report);

}  // namespace spikeloom
