// spikeloom bench: how fast training is on this machine.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include <spikeloom/benchmark.hpp>
#include <spikeloom/error.hpp>
#include "io/safetensors.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

using Json = nlohmann::ordered_json;

Json pairs(const std::vector<std::pair<std::string, double>>& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = value;
  return object;
}

Json to_json(const BenchmarkReport& report) {
  return {{"threads", report.threads},
          {"batch", report.batch},
          {"steps", report.steps},
          {"samples_per_s", report.samples_per_second},
          {"ms_per_batch", report.milliseconds_per_batch},
          {"cpu_ms_per_batch", report.cpu_milliseconds_per_batch},
          {"phases",
           {{"forward", report.forward_ms},
            {"backward", report.backward_ms},
            {"update", report.update_ms},
            {"data", report.data_ms}}},
          {"input_activity", report.input_activity},
          {"activity", pairs(report.activity)},
          {"active_fraction", pairs(report.active_fraction)},
          {"losses", report.losses},
          {"saved_state_bytes", report.saved_state_bytes}};
}

/// The rough limit for what was measured. Asked for outside the child process, whose peak memory is not to hold it.
std::optional<double> limit_of(const BenchmarkOptions& options, const Json& measured) {
  BenchmarkReport report;
  report.threads = measured["threads"];
  report.batch = measured["batch"];
  report.steps = measured["steps"];
  report.input_activity = measured["input_activity"];
  for (const auto& [name, value] : measured["activity"].items()) {
    report.activity.emplace_back(name, value);
    report.active_fraction.emplace_back(name, measured["active_fraction"][name]);
  }
  return benchmark_limit(options, report);
}

std::string limit_text(const Json& report) {
  if (!report.contains("limit_samples_per_s"))
    return "not known: `spikeloom bench kernels` or `spikeloom plan --measure` measures this machine";
  const double limit = report["limit_samples_per_s"].get<double>();
  return fmt::format("{:.0f} samples/s, reached {:.2f}", limit, report["samples_per_s"].get<double>() / limit);
}

/// Runs the benchmark in a child process, so that its peak memory is that of this mode alone. Must be called before
/// this process has threads.
Json run_in_child(const BenchmarkOptions& options) {
  int channel[2];
  if (pipe(channel) != 0) throw ResourceError("no pipe for the benchmark's child process");
  const pid_t child = fork();
  if (child < 0) throw ResourceError("no child process for the benchmark");
  if (child == 0) {
    close(channel[0]);
    std::string text;
    try {
      text = to_json(run_benchmark(options)).dump();
    } catch (const std::exception& error) {
      text = Json{{"error", error.what()}}.dump();
    }
    const bool written = write(channel[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(channel[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(channel[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  close(channel[0]);
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw ResourceError("the benchmark's child process was killed; is there enough memory?");
  Json report = Json::parse(text);
  if (report.contains("error")) throw UserError(report["error"].get<std::string>());
  report["peak_memory_bytes"] = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return report;
}

const char* name_of(EngineMode mode) {
  switch (mode) {
    case EngineMode::automatic:
      return "auto";
    case EngineMode::sparse:
      return "sparse";
    case EngineMode::dense:
      return "dense";
  }
  return "";
}

const char* name_of(EnginePrecision precision) { return precision == EnginePrecision::bf16 ? "bf16" : "fp32"; }

void bench_train(const BenchmarkOptions& options, bool with_dense, bool json) {
  Json mine = run_in_child(options);
  Json dense = mine;
  if (with_dense && options.mode != EngineMode::dense) {
    BenchmarkOptions other = options;
    other.mode = EngineMode::dense;
    other.precision = EnginePrecision::fp32;
    dense = run_in_child(other);
    // Interleaved: the same again after the dense run, and the mean of both, for the clock may have wandered meanwhile.
    const Json again = run_in_child(options);
    const double ms = (mine["ms_per_batch"].get<double>() + again["ms_per_batch"].get<double>()) / 2.0;
    mine["ms_per_batch"] = ms;
    mine["samples_per_s"] = 1000.0 * mine["batch"].get<int>() / ms;
  }
  Json result{{"net", options.net},
              {"threads", mine["threads"]},
              {"mode", name_of(options.mode)},
              {"precision", name_of(options.precision)}};
  for (const auto& [key, value] : mine.items()) result[key] = value;
  if (const std::optional<double> limit = limit_of(options, mine)) result["limit_samples_per_s"] = *limit;
  if (with_dense) {
    result["dense"] = {{"losses", dense["losses"]},
                       {"samples_per_s", dense["samples_per_s"]},
                       {"ms_per_batch", dense["ms_per_batch"]},
                       {"peak_memory_bytes", dense["peak_memory_bytes"]}};
    result["speedup_over_dense"] = dense["ms_per_batch"].get<double>() / mine["ms_per_batch"].get<double>();
  }
  if (json) return print_json(result);
  std::vector<std::pair<std::string, std::string>> rows{
      {"net", options.net},
      {"mode", name_of(options.mode)},
      {"precision", name_of(options.precision)},
      {"threads", std::to_string(mine["threads"].get<int>())},
      {"speed", fmt::format("{:.0f} samples/s, {:.2f} ms per batch of {}", mine["samples_per_s"].get<double>(),
                            mine["ms_per_batch"].get<double>(), mine["batch"].get<int>())},
      {"phases", fmt::format("forward {:.2f} ms, backward {:.2f} ms, update {:.2f} ms, data {:.2f} ms",
                             mine["phases"]["forward"].get<double>(), mine["phases"]["backward"].get<double>(),
                             mine["phases"]["update"].get<double>(), mine["phases"]["data"].get<double>())},
      {"input activity", fmt::format("{:.4f}", mine["input_activity"].get<double>())}};
  if (options.mode != EngineMode::dense) rows.insert(rows.begin() + 5, {"rough limit", limit_text(result)});
  for (const auto& [name, value] : mine["activity"].items()) {
    rows.emplace_back("activity " + name, fmt::format("{:.4f}, active in the backward pass {:.4f}", value.get<double>(),
                                                      mine["active_fraction"][name].get<double>()));
  }
  rows.emplace_back("peak memory", fmt::format("{:.0f} MB, of it kept for the backward pass {:.1f} MB",
                                               mine["peak_memory_bytes"].get<double>() / 1e6,
                                               mine["saved_state_bytes"].get<double>() / 1e6));
  if (!with_dense) return print_table(rows);
  rows.emplace_back("dense mode", fmt::format("{:.0f} samples/s, {:.2f} ms per batch, peak memory {:.0f} MB",
                                              dense["samples_per_s"].get<double>(), dense["ms_per_batch"].get<double>(),
                                              dense["peak_memory_bytes"].get<double>() / 1e6));
  rows.emplace_back("ratio",
                    fmt::format("{:.2f} times the dense mode's speed", result["speedup_over_dense"].get<double>()));
  print_table(rows);
}

/// The weights, the spikes and the labels as tensors, for programs that shall compute the same thing. Integers are
/// float32 as well; all are below 2^24, so exact.
void export_case(const BenchmarkOptions& options, const std::string& path) {
  const BenchmarkCase numbers = benchmark_case(options);
  const auto floats = [](const auto& values) { return std::vector<float>(values.begin(), values.end()); };
  const std::uint64_t samples = numbers.labels.size();
  const auto steps = static_cast<std::uint64_t>(numbers.steps);
  SafetensorsWriter file;
  for (std::size_t l = 0; l < numbers.weights.size(); ++l) {
    const auto inputs = static_cast<std::uint64_t>(numbers.sizes[l]);
    const auto size = static_cast<std::uint64_t>(numbers.sizes[l + 1]);
    file.add(fmt::format("layer{}.weight", l), {size, inputs}, numbers.weights[l]);
    if (!numbers.recurrent_weights[l].empty())
      file.add(fmt::format("layer{}.recurrent_weight", l), {size, size}, numbers.recurrent_weights[l]);
    file.add(fmt::format("layer{}.bias", l), {size}, numbers.biases[l]);
  }
  file.add("labels", {samples}, floats(numbers.labels));
  file.add("spikes.counts", {samples, steps}, floats(numbers.spike_counts));
  file.add("spikes.channels", {numbers.spike_channels.size()}, floats(numbers.spike_channels));
  file.set("net", options.net);
  file.set("activity", fmt::format("{}", options.activity));
  file.set("batch", std::to_string(numbers.batch));
  file.set("decay", fmt::format("{}", numbers.decay));
  file.set("learning_rate", fmt::format("{}", numbers.learning_rate));
  file.write(path);
}

struct Options {
  std::string export_path;
  BenchmarkOptions benchmark;
  std::string mode = "sparse";
  std::string precision = "fp32";
  double input_activity = -1.0;
  int batch = 0;
  int steps = 0;
  bool no_dense = false;
  bool json = false;
};

void run(Options options) {
  if (options.input_activity >= 0.0) options.benchmark.input_activity = options.input_activity;
  if (options.batch > 0) options.benchmark.batch = options.batch;
  if (options.steps > 0) options.benchmark.steps = options.steps;
  for (const EngineMode mode : {EngineMode::automatic, EngineMode::sparse, EngineMode::dense}) {
    if (options.mode == name_of(mode)) options.benchmark.mode = mode;
  }
  if (options.precision == name_of(EnginePrecision::bf16)) options.benchmark.precision = EnginePrecision::bf16;
  if (!options.export_path.empty()) return export_case(options.benchmark, options.export_path);
  bench_train(options.benchmark, !options.no_dense, options.json);
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* bench = app.add_subcommand("bench", "Measure how fast training is on this machine");
  bench->require_subcommand(1);
  add_bench_kernels(*bench, action);
  CLI::App* train =
      bench->add_subcommand("train", "Whole training steps of a benchmark network, and the same in dense mode");
  auto options = std::make_shared<Options>();
  std::string nets;
  for (const BenchmarkNet& net : benchmark_nets()) nets += (nets.empty() ? "" : ", ") + net.name;
  train->add_option("--net", options->benchmark.net, "one of " + nets + ", or sizes such as 784-1000-10")
      ->capture_default_str();
  train->add_option("--activity", options->benchmark.activity, "spikes per hidden neuron and step")
      ->check(CLI::Range(0.0001, 1.0))
      ->capture_default_str();
  train->add_option("--input-activity", options->input_activity, "spikes per channel and step (default: the net's)")
      ->check(CLI::Range(0.0, 1.0));
  train->add_option("--batch", options->batch, "samples in a batch (default: the net's)")
      ->check(CLI::Range(1, 1 << 20));
  train->add_option("--steps", options->steps, "time steps (default: the net's)")->check(CLI::Range(1, 1 << 20));
  train->add_option("--threads", options->benchmark.threads, "worker threads (default: all cores)")
      ->check(CLI::Range(1, 4096));
  train->add_option("--mode", options->mode, "sparse, dense or auto")
      ->check(CLI::IsMember({"sparse", "dense", "auto"}))
      ->capture_default_str();
  train->add_option("--precision", options->precision, "fp32, or bf16 copies of weights and deltas")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->capture_default_str();
  train->add_option("--seconds", options->benchmark.seconds, "how long to measure, at least")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  train->add_option("--export", options->export_path,
                    "measure nothing: write weights, input spikes and labels to this file (safetensors)");
  train->add_flag("--no-dense", options->no_dense, "leave out the dense mode, which takes longest");
  train->add_flag("--json", options->json, "one JSON object on stdout");
  train->callback([&action, options] { action = [options] { run(*options); }; });
}

}  // namespace spikeloom
