#include <spikeloom/benchmark.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>

#include <fmt/format.h>

#include <spikeloom/error.hpp>
#include "core/random.hpp"
#include "core/worker_team.hpp"
#include "data/spike_batch.hpp"
#include "engine/engine.hpp"
#include "network/parameters.hpp"
#include "plan/cost.hpp"
#include "plan/figures_file.hpp"
#include "plan/machine.hpp"
#include "plan/plan.hpp"
#include "train/losses.hpp"
#include "train/optimizer.hpp"

namespace spikeloom {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLargestSize = 65536;  // of a layer of a network that is given by its sizes

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double cpu_milliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// LIF layers, alpha 0.95, reset to zero, SuperSpike with the window [0.9, inf]; a leaky integrator with cross-entropy
/// at every step above them.
Configuration configuration_of(const BenchmarkNet& net, const BenchmarkOptions& options) {
  Configuration configuration;
  NetworkSpec& network = configuration.network;
  network.channels = net.sizes.front();
  network.steps = options.steps.value_or(net.steps);
  for (std::size_t l = 1; l < net.sizes.size(); ++l) {
    const bool last = l + 1 == net.sizes.size();
    LayerSpec& layer = network.layers.emplace_back();
    layer.name = last ? "output" : fmt::format("hidden{}", l);
    layer.neuron = last ? NeuronKind::leaky_integrator : NeuronKind::lif;
    layer.size = net.sizes[l];
    layer.membrane.decay_given = true;
    layer.init = InitKind::normal;
    layer.recurrent = net.recurrent && !last;
  }
  configuration.optimizer.learning_rate = 1e-5;  // small, so that the activity stays where it was set
  configuration.training.batch_size = options.batch.value_or(net.batch);
  configuration.engine.mode = options.mode;
  configuration.engine.precision = options.precision;
  configuration.engine.threads = options.threads;
  return configuration;
}

/// Independent spikes of one probability, as many recordings as three batches.
SpikeDataset synthetic_spikes(const NetworkSpec& network, int samples, double activity) {
  SpikeDataset data({.step_us = 1000, .steps = network.steps}, network.channels);
  RandomStream random(1, "benchmark input");
  std::vector<Event> events;
  for (int sample = 0; sample < samples; ++sample) {
    events.clear();
    // The gap to the next spike, in cells of (step, channel), is geometric.
    const auto cells = static_cast<std::uint64_t>(network.steps) * network.channels;
    const double log_miss = std::log1p(-std::min(activity, 0.999999));
    for (std::uint64_t cell = 0; activity > 0.0; ++cell) {
      cell += static_cast<std::uint64_t>(std::log1p(-random.uniform()) / log_miss);
      if (cell >= cells) break;
      events.push_back({static_cast<std::int64_t>(cell / network.channels) * 1000,
                        static_cast<std::uint32_t>(cell % network.channels)});
    }
    data.add(events, static_cast<int>(random.below(network.outputs())), -1, "synthetic");
  }
  return data;
}

/// Scales the weights, layer by layer, until each hidden layer fires at the wanted rate.
void set_activity(Engine& engine, Parameters& parameters, const SpikeBatch& batch, const ReadoutLoss& loss,
                  double activity) {
  for (std::size_t l = 0; l + 1 < parameters.layers.size(); ++l) {
    const std::vector<float> weight = parameters.layers[l].weight;
    double low = 1e-3, high = 1e3;
    for (int i = 0; i < 16; ++i) {
      const double scale = std::sqrt(low * high);
      for (std::size_t w = 0; w < weight.size(); ++w)
        parameters.layers[l].weight[w] = static_cast<float>(weight[w] * scale);
      engine.import_parameters(parameters);
      (engine.evaluate(batch, loss).layers[l].activity < activity ? low : high) = scale;
    }
  }
}

/// Everything before the first training step; the same numbers for any number of threads.
struct Setup {
  Configuration configuration;
  int batch_size;
  WorkerTeam team;
  Engine engine;
  SpikeDataset data;
  std::unique_ptr<ReadoutLoss> loss;
  Parameters parameters;

  explicit Setup(const BenchmarkOptions& options) : Setup(benchmark_net(options.net), options) {}
  Setup(const BenchmarkNet& net, const BenchmarkOptions& options)
      : configuration(configuration_of(net, options)),
        batch_size(options.batch.value_or(net.batch)),
        team(options.threads > 0 ? options.threads : available_cores()),
        engine(configuration.network, make_plan(configuration.network, options.mode, team.size(), options.precision),
               team),
        data(synthetic_spikes(configuration.network, 3 * batch_size,
                              options.input_activity.value_or(net.input_activity))),
        loss(make_readout_loss(configuration.loss, configuration.network)),
        parameters(initial_parameters(configuration.network, 1)) {
    std::vector<std::uint32_t> few(std::min(batch_size, 4));
    for (std::size_t i = 0; i < few.size(); ++i) few[i] = static_cast<std::uint32_t>(i);
    SpikeBatch batch;
    gather_batch(data, few, batch);
    set_activity(engine, parameters, batch, *loss, options.activity);
  }
};

}  // namespace

const std::vector<BenchmarkNet>& benchmark_nets() {
  static const std::vector<BenchmarkNet> nets{
      {"nmnist-mlp", {2312, 1471, 1471, 10}, 100, 48, 0.02},
      {"shd-mlp", {700, 1024, 512, 128, 20}, 500, 48, 0.02},
      {"gesture-mlp", {4608, 1024, 512, 128, 11}, 1000, 48, 0.01},
      {"wide", {4096, 4096, 4096, 10}, 50, 48, 0.01},
      {"small", {700, 256, 20}, 100, 128, 0.05},
      {"shd-rnn", {700, 1024, 20}, 100, 256, 0.05, true},
      {"shd-rnn-small", {700, 256, 20}, 250, 128, 0.03, true},
  };
  return nets;
}

namespace {

/// The sizes in "784-1000-10", or nothing if this is no such list.
std::vector<int> sizes_of(const std::string& name) {
  std::vector<int> sizes;
  for (const char *at = name.data(), *end = at + name.size(); at < end;) {
    int size = 0;
    const auto [stop, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > kLargestSize || (stop < end && *stop != '-')) return {};
    sizes.push_back(size);
    at = stop + 1;
  }
  return sizes;
}

}  // namespace

BenchmarkNet benchmark_net(const std::string& name) {
  std::string known;
  for (const BenchmarkNet& net : benchmark_nets()) {
    if (net.name == name) return net;
    known += (known.empty() ? "" : ", ") + net.name;
  }
  const std::vector<int> sizes = sizes_of(name);
  if (sizes.size() >= 2) return {.name = name, .sizes = sizes};
  throw UserError(
      fmt::format("--net {}: no such benchmark network; known are {}, and lists of sizes (1 to {}) such as 784-1000-10",
                  name, known, kLargestSize));
}

Configuration benchmark_configuration(const BenchmarkOptions& options) {
  return configuration_of(benchmark_net(options.net), options);
}

BenchmarkCase benchmark_case(const BenchmarkOptions& options) {
  const Setup setup(options);
  BenchmarkCase result;
  result.sizes = benchmark_net(options.net).sizes;
  result.steps = setup.configuration.network.steps;
  result.batch = setup.batch_size;
  result.decay = setup.configuration.network.layers.front().membrane.decay.low;
  result.learning_rate = setup.configuration.optimizer.learning_rate;
  for (const LayerParameters& layer : setup.parameters.layers) {
    result.weights.push_back(layer.weight);
    result.recurrent_weights.push_back(layer.recurrent_weight);
    result.biases.push_back(layer.bias);
  }
  for (std::size_t sample = 0; sample < setup.data.size(); ++sample) {
    result.labels.push_back(setup.data.label(sample));
    const auto offsets = setup.data.offsets(sample);
    for (std::size_t t = 0; t + 1 < offsets.size(); ++t) result.spike_counts.push_back(offsets[t + 1] - offsets[t]);
    const auto ids = setup.data.ids(sample);
    result.spike_channels.insert(result.spike_channels.end(), ids.begin(), ids.end());
  }
  return result;
}

BenchmarkReport run_benchmark(const BenchmarkOptions& options) {
  Setup setup(options);
  const Configuration& configuration = setup.configuration;
  const SpikeDataset& data = setup.data;
  const int batch_size = setup.batch_size;
  Engine& engine = setup.engine;
  SpikeBatch batch;

  BenchmarkReport report;
  report.threads = setup.team.size();
  report.batch = batch_size;
  report.steps = configuration.network.steps;
  Optimizer optimizer(configuration.optimizer, engine);
  setup.parameters = {};  // the engine has its own
  std::vector<double> total, cpu, forward, backward, update, gather;
  std::vector<std::uint32_t> samples(batch_size);
  const auto begin = Clock::now();
  for (int step = 0; step < 20 || total.size() < 5 || milliseconds_since(begin) < 1000.0 * options.seconds; ++step) {
    for (int i = 0; i < batch_size; ++i) samples[i] = static_cast<std::uint32_t>((step % 3) * batch_size + i);
    const auto start = Clock::now();
    const double cpu_start = cpu_milliseconds();
    gather_batch(data, samples, batch);
    gather.push_back(milliseconds_since(start));
    optimizer.begin_step(configuration.optimizer.learning_rate);
    engine.set_dropout({configuration.seed, static_cast<std::uint64_t>(step), 0});
    const BatchResult result = engine.train_step(batch, *setup.loss, optimizer, configuration.optimizer.gradient_clip);
    total.push_back(milliseconds_since(start));
    cpu.push_back(cpu_milliseconds() - cpu_start);
    forward.push_back(1000.0 * result.forward_seconds);
    backward.push_back(1000.0 * result.backward_seconds);
    update.push_back(1000.0 * result.update_seconds);
    if (step < 20) report.losses.push_back(result.loss / batch_size);
    report.saved_state_bytes = result.saved_state_bytes;
    report.activity.clear();
    report.active_fraction.clear();
    for (std::size_t l = 0; l + 1 < result.layers.size(); ++l) {
      report.activity.emplace_back(configuration.network.layers[l].name, result.layers[l].activity);
      report.active_fraction.emplace_back(configuration.network.layers[l].name, result.layers[l].active_fraction);
    }
    // A slow mode is not timed for minutes: what was asked for in seconds is enough once a few batches are in.
    if (step >= 4 && milliseconds_since(begin) > 10'000.0 * options.seconds) break;
  }
  report.input_activity = batch.activity();
  report.milliseconds_per_batch = median(total);
  report.cpu_milliseconds_per_batch = median(cpu);
  report.samples_per_second = 1000.0 * batch_size / report.milliseconds_per_batch;
  report.forward_ms = median(forward);
  report.backward_ms = median(backward);
  report.update_ms = median(update);
  report.data_ms = median(gather);
  return report;
}

std::optional<double> benchmark_limit(const BenchmarkOptions& options, const BenchmarkReport& report) {
  if (options.mode == EngineMode::dense) return std::nullopt;
  const std::optional<MachineFigures> figures = load_figures(figures_path(describe_machine()), program_identity());
  if (!figures) return std::nullopt;
  const NetworkSpec network = benchmark_configuration(options).network;
  Workload work;
  work.batch = report.batch;
  work.steps = report.steps;
  work.input_activity = report.input_activity;
  for (std::size_t l = 0; l + 1 < network.layers.size(); ++l) {
    work.activity.push_back(report.activity[l].second);
    work.active_fraction.push_back(report.active_fraction[l].second);
  }
  work.activity.push_back(0.0);  // of the readout
  work.active_fraction.push_back(0.0);
  const Plan plan = make_plan(network, options.mode, report.threads, options.precision);
  return 1e9 * report.batch / rough_limit_ns(network, plan, work, *figures);
}

}  // namespace spikeloom
