// spikeloom bench kernels: this machine's memory, and how near the hot kernels come to it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/worker_team.hpp"
#include "machine_report.hpp"
#include "output.hpp"
#include "plan/figures_file.hpp"
#include "train/measure/exchange_costs.hpp"
#include "train/measure/kernel_bench.hpp"
#include "train/measure/measure_machine.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const KernelTiming& timing, double clock_ghz) {
  return {{"kernel", timing.kernel},
          {"inputs", timing.inputs},
          {"activity", timing.activity},
          {"active_fraction", timing.active_fraction},
          {"events", timing.events},
          {"ns_per_event", timing.ns_per_event()},
          {"ns_per_row", timing.ns_per_row()},
          {"bytes_per_ns", timing.bytes_per_ns()},
          {"bytes_per_cycle", timing.bytes_per_ns() / clock_ghz},
          {"level", timing.level},
          {"roofline_bytes_per_ns", timing.roofline},
          {"fraction", timing.fraction()}};
}

Json to_json(const ExchangeCase& layer, const std::vector<ExchangeTiming>& timings) {
  Json threads = Json::array();
  for (const ExchangeTiming& timing : timings) {
    threads.push_back({{"threads", timing.threads},
                       {"barrier_ns", timing.barrier},
                       {"list_spikes_ns", timing.list_spikes},
                       {"gather_gradients_ns", timing.gather_gradients}});
  }
  return {{"neurons", layer.neurons},
          {"samples", layer.samples},
          {"activity", layer.activity},
          {"active_fraction", layer.active_fraction},
          {"by_threads", std::move(threads)}};
}

std::string exchange_text(const ExchangeCase& layer, const std::vector<ExchangeTiming>& timings) {
  std::string text =
      fmt::format("\n{:>7} {:>12} {:>15} {:>20}\n", "threads", "ns: barrier", "spikes listed", "gradients gathered");
  for (const ExchangeTiming& timing : timings)
    text += fmt::format("{:>7} {:>12.0f} {:>15.0f} {:>20.0f}\n", timing.threads, timing.barrier, timing.list_spikes,
                        timing.gather_gradients);
  return text + fmt::format(
                    "A step of the step-major schedule of a recurrent layer beside its sums: {} neurons, {} samples,\n"
                    "{:.0f} % spiking, {:.0f} % active. Listed in the forward pass, gathered in the backward pass.\n",
                    layer.neurons, layer.samples, 100.0 * layer.activity, 100.0 * layer.active_fraction);
}

void run(bool json) {
  const Machine machine = describe_machine();
  const MachineFigures figures = machine_figures(machine, /*anew=*/true);
  const std::vector<KernelTiming> timings = bench_kernels(machine, figures);
  const ExchangeCase recurrent;
  const std::vector<ExchangeTiming> exchange = time_exchange(recurrent, available_cores());
  if (json) {
    Json kernels = Json::array();
    for (const KernelTiming& timing : timings) kernels.push_back(to_json(timing, figures.clock_ghz));
    print_json({{"machine", machine_as_json(machine, &figures)},
                {"tile_width", 64},
                {"steps", 100},
                {"precision", "fp32"},
                {"kernels", std::move(kernels)},
                {"recurrent_step", to_json(recurrent, exchange)}});
    return;
  }
  print_table(machine_rows(machine, &figures));
  std::string text = fmt::format("\n{:17} {:>6} {:>8} {:>9} {:>9} {:>8} {:>8}  {}\n", "kernel", "inputs", "activity",
                                 "ns/event", "ns/row", "bytes/ns", "bytes/cy", "of the roofline");
  for (const KernelTiming& timing : timings) {
    text += fmt::format("{:17} {:>6} {:>8} {:>9.2f} {:>9.1f} {:>8.1f} {:>8.1f}  {:.0f} % of {}\n", timing.kernel,
                        timing.inputs, timing.rows > 0.0 ? fmt::format("{:.0f} %", 100.0 * timing.activity) : "",
                        timing.ns_per_event(), timing.ns_per_row(), timing.bytes_per_ns(),
                        timing.bytes_per_ns() / figures.clock_ghz, 100.0 * timing.fraction(), timing.level);
  }
  print_text(text +
             "A tile of 64 neurons, 100 steps, one core. Events: row-adds of 256 bytes; for input_gradient the active\n"
             "neurons (twice the activity), for backward_spiking the listed ones, for adam_step parameters.\n" +
             exchange_text(recurrent, exchange));
}

}  // namespace

void add_bench_kernels(CLI::App& bench, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* verb =
      bench.add_subcommand("kernels", "The hot kernels one by one, against what this machine's memory gives");
  verb->add_flag("--json", *json, "one JSON object on stdout");
  verb->callback([json, &action] { action = [json] { run(*json); }; });
}

}  // namespace spikeloom
