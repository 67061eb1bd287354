// spikeloom plan: who will do what, where the memory and the time of a training step go.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include <spikeloom/benchmark.hpp>
#include "console.hpp"
#include "interrupt.hpp"
#include "io/explain_plan.hpp"
#include "machine_report.hpp"
#include "output.hpp"
#include "plan/mode_choice.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string configuration;
  std::string net;
  std::vector<std::string> set;
  int threads = -1;
  int batch = 0;
  std::string precision;
  double activity = -1.0;
  double input_activity = -1.0;
  bool measure = false;
  bool json = false;
};

double ms(double ns) { return ns * 1e-6; }

std::string mode_of(const LayerSpec& layer, const LayerCost& cost) {
  if (!layer.spiking()) return "sparse";
  if (cost.forward_dense != cost.backward_dense) return cost.forward_dense ? "dense forward" : "dense backward";
  return cost.forward_dense ? "dense" : "sparse";
}

Json phases(const Prediction& p) {
  return {{"forward", ms(p.forward_ns)},
          {"backward", ms(p.backward_ns)},
          {"update", ms(p.update_ns)},
          {"data", ms(p.data_ns)}};
}

Json layer_as_json(const PlanReport& report, std::size_t l) {
  const LayerSpec& spec = report.network.layers[l];
  const LayerPlan& plan = report.plan.layers[l];
  const LayerCost& cost = report.prediction.layers[l];
  const double turn = report.dense_from[l];
  return {{"name", spec.name},
          {"inputs", report.network.inputs_of(l)},
          {"size", spec.size},
          {"mode", mode_of(spec, cost)},
          {"tile_width", plan.tile_width},
          {"tiles", plan.tiles},
          {"tiles_per_worker", tiles_per_worker(plan, report.plan.workers)},
          {"balance", report.tile_balance[l]},
          {"group_samples", group_size(report.network, report.plan, l, report.work)},
          {"input_activity", report.work.input_of(l)},
          {"activity", report.work.activity[l]},
          {"active_fraction", report.work.active_fraction[l]},
          {"predicted_ms",
           {{"forward", ms(cost.forward)},
            {"merge", ms(cost.merge)},
            {"delta", ms(cost.delta)},
            {"input_gradient", ms(cost.input_gradient)},
            {"weight_gradient", ms(cost.weight_gradient)},
            {"lists", ms(cost.lists)},
            {"update", ms(cost.update)}}},
          {"dense_from_activity", turn < 1.0 ? Json(turn) : Json()}};
}

Json to_json(const PlanReport& report) {
  Json layers = Json::array();
  for (std::size_t l = 0; l < report.network.layers.size(); ++l) layers.push_back(layer_as_json(report, l));
  const MemoryUse& memory = report.memory;
  const double total = report.prediction.total_ns();
  Json cpus = Json::array();
  for (int worker = 0; worker < report.plan.workers; ++worker) {
    const bool seated = worker < static_cast<int>(report.machine.seats.size());
    cpus.push_back(seated ? Json(report.machine.seats[worker].cpu) : Json());
  }
  return {{"machine", machine_as_json(report.machine, &report.figures)},
          {"workers", report.plan.workers},
          {"cpu_of_worker", cpus},
          {"batch", report.work.batch},
          {"steps", report.work.steps},
          {"bptt_steps", report.plan.bptt_steps},
          {"input_activity", report.work.input_activity},
          {"range_samples", range_size(report.plan, report.work)},
          {"layers", layers},
          {"memory_bytes",
           {{"weights", memory.weights},
            {"optimiser", memory.optimiser},
            {"gradients", memory.gradients},
            {"saved", memory.saved},
            {"deltas", memory.deltas},
            {"buffers", memory.buffers},
            {"total", memory.total()}}},
          {"predicted",
           {{"ms_per_batch", ms(total)},
            {"samples_per_s", 1e9 * report.work.batch / total},
            {"phases", phases(report.prediction)}}},
          {"limit_samples_per_s", 1e9 * report.work.batch / report.limit_ns},
          {"auto_dense_from", {{"forward", kForwardDenseFrom}, {"backward", kBackwardDenseFrom}}},
          {"assumed", report.assumed}};
}

std::string layers_text(const PlanReport& report) {
  std::string text = fmt::format("\n{:10} {:>12} {:>9} {:>14} {:>7} {:>8} {:>8} {:>14}\n", "layer", "inputs x size",
                                 "tiles", "tiles/worker", "group", "input", "active", "mode");
  for (std::size_t l = 0; l < report.network.layers.size(); ++l) {
    const LayerPlan& plan = report.plan.layers[l];
    const LayerSpec& spec = report.network.layers[l];
    const double busiest = static_cast<double>(plan.tiles) / report.plan.workers / report.tile_balance[l];
    text += fmt::format("{:10} {:>12} {:>9} {:>14} {:>7} {:>8} {:>8} {:>14}\n", spec.name,
                        fmt::format("{} x {}", report.network.inputs_of(l), spec.size),
                        fmt::format("{} x {}", plan.tiles, plan.tile_width),
                        spec.spiking() ? fmt::format("up to {:.4g}", busiest) : "by samples",
                        group_size(report.network, report.plan, l, report.work), percent(report.work.input_of(l)),
                        spec.spiking() ? percent(report.work.active_fraction[l]) : "",
                        mode_of(spec, report.prediction.layers[l]));
  }
  return text;
}

std::string times_text(const PlanReport& report) {
  std::string text = fmt::format("\n{:10} {:>8} {:>7} {:>7} {:>9} {:>10} {:>7} {:>8} {:>22}\n", "ms/batch", "forward",
                                 "merge", "delta", "dS below", "dW", "lists", "update", "dense would win from");
  for (std::size_t l = 0; l < report.network.layers.size(); ++l) {
    const LayerCost& cost = report.prediction.layers[l];
    const double turn = report.dense_from[l];
    text += fmt::format("{:10} {:>8.2f} {:>7.2f} {:>7.2f} {:>9.2f} {:>10.2f} {:>7.2f} {:>8.2f} {:>22}\n",
                        report.network.layers[l].name, ms(cost.forward), ms(cost.merge), ms(cost.delta),
                        ms(cost.input_gradient), ms(cost.weight_gradient), ms(cost.lists), ms(cost.update),
                        !report.network.layers[l].spiking() ? ""
                        : turn < 1.0                        ? percent(turn) + " input"
                                                            : "never");
  }
  return text;
}

std::string chunks_text(const PlanReport& report) {
  const int chunk = of_chunk(report.plan, report.work).steps;
  return chunk < report.work.steps ? fmt::format(", in chunks of {}, each forward twice", chunk) : "";
}

void print(const PlanReport& report) {
  print_table(machine_rows(report.machine, &report.figures));
  print_text(layers_text(report));
  print_text(times_text(report));
  const Prediction& p = report.prediction;
  const MemoryUse& m = report.memory;
  const auto mebi = [](std::uint64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / 1048576.0); };
  print_text("\n");
  std::string workers;
  for (int worker = 0; worker < report.plan.workers && worker < static_cast<int>(report.machine.seats.size()); ++worker)
    workers += fmt::format("{}{} on CPU {}", worker == 0 ? "" : ", ", worker, report.machine.seats[worker].cpu);
  std::vector<std::pair<std::string, std::string>> rows{
      {"workers", fmt::format("{}: {}", report.plan.workers, workers)},
      {"batch", fmt::format("{} samples of {} steps{}; deltas of {} samples at a time", report.work.batch,
                            report.work.steps, chunks_text(report), range_size(report.plan, report.work))},
      {"predicted",
       fmt::format("{:.2f} ms per batch, {:.0f} samples/s: forward {:.2f}, backward {:.2f}, update {:.2f}, "
                   "data {:.2f} ms",
                   ms(p.total_ns()), 1e9 * report.work.batch / p.total_ns(), ms(p.forward_ns), ms(p.backward_ns),
                   ms(p.update_ns), ms(p.data_ns))},
      {"rough limit", fmt::format("{:.0f} samples/s (docs/performance.md)", 1e9 * report.work.batch / report.limit_ns)},
      {"memory", fmt::format("{} MiB: weights {}, optimiser {}, gradients {}, saved spikes {}, deltas {}, buffers {}",
                             mebi(m.total()), mebi(m.weights), mebi(m.optimiser), mebi(m.gradients), mebi(m.saved),
                             mebi(m.deltas), mebi(m.buffers))},
      {"auto", fmt::format("turns dense from {} of the inputs in the forward, {} in the backward pass: a committed "
                           "table, not this prediction",
                           percent(kForwardDenseFrom), percent(kBackwardDenseFrom))}};
  for (const std::string& figure : report.assumed) rows.emplace_back("assumed", figure);
  print_table(rows);
}

Configuration configuration_of(const Options& options) {
  if (options.net.empty()) return load_configuration(options.configuration, options.set);
  BenchmarkOptions benchmark;
  benchmark.net = options.net;
  return benchmark_configuration(benchmark);
}

void run(const Options& options) {
  Configuration configuration = configuration_of(options);
  if (options.threads >= 0) configuration.engine.threads = options.threads;
  if (options.precision == "fp32") configuration.engine.precision = EnginePrecision::fp32;
  if (options.precision == "bf16") configuration.engine.precision = EnginePrecision::bf16;
  if (options.batch > 0) configuration.training.batch_size = options.batch;
  PlanRequest request;
  request.measure_anew = options.measure;
  request.read_data = options.net.empty();
  if (options.activity >= 0.0) request.activity = options.activity;
  if (options.input_activity >= 0.0) request.input_activity = options.input_activity;
  if (!options.net.empty() && !request.input_activity)
    request.input_activity = benchmark_net(options.net).input_activity;
  PlanReport report;
  run_interruptible([&](ProgressListener& listener) { report = explain_plan(configuration, request, listener); });
  if (options.json) return print_json(to_json(report));
  print(report);
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("plan", "Show who does what in training, and where its memory and time will go");
  CLI::Option* file = verb->add_option("CONFIG", options->configuration, "Configuration (TOML)");
  std::string nets;
  for (const BenchmarkNet& net : benchmark_nets()) nets += (nets.empty() ? "" : ", ") + net.name;
  CLI::Option* net = verb->add_option(
      "--net", options->net, "instead of CONFIG, a network of bench train: " + nets + ", or sizes such as 784-1000-10");
  CLI::Option* set = verb->add_option("--set", options->set, "Replace a setting of CONFIG; may be repeated")
                         ->allow_extra_args(false)
                         ->type_name("KEY=VALUE");
  net->excludes(file)->excludes(set);
  verb->add_option("--threads", options->threads, "The same as --set engine.threads=N; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  verb->add_option("--batch", options->batch, "The same as --set training.batch_size=N")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
  verb->add_option("--precision", options->precision, "The same as --set engine.precision=P")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  verb->add_option("--activity", options->activity, "Spikes per hidden neuron and step (default: what it starts with)")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_option("--input-activity", options->input_activity, "Spikes per channel and step (default: the data's)")
      ->check(CLI::Range(0.0, 1.0));
  verb->add_flag("--measure", options->measure, "Measure the machine anew rather than use what was kept of it");
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  verb->callback([=, &action] {
    if (file->empty() && net->empty()) throw CLI::RequiredError("CONFIG or --net");
    action = [options] { run(*options); };
  });
}

}  // namespace spikeloom
