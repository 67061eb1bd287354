// spikeloom eval: what a trained network makes of a data set.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include <spikeloom/error.hpp>
#include <spikeloom/run.hpp>
#include "interrupt.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

constexpr std::size_t kPrintedClasses = 24;  // a larger confusion matrix is for --json

struct Options {
  std::string run;
  std::string data;
  std::string predictions;
  std::vector<std::string> record;  // what, file
  std::vector<std::string> set;
  std::string decision;
  int threads = 0;
  bool json = false;
};

nlohmann::ordered_json to_json(const EvalReport& report) {
  nlohmann::ordered_json activity = nlohmann::ordered_json::object();
  for (const auto& [layer, value] : report.activity) activity[layer] = value;
  nlohmann::ordered_json object = {{"samples", report.samples},
                                   {"loss", report.loss},
                                   {"accuracy", report.accuracy},
                                   {"undecided", report.undecided},
                                   {"confusion", report.confusion},
                                   {"activity", activity},
                                   {"input_activity", report.input_activity},
                                   {"synaptic_operations_per_sample", report.synaptic_operations_per_sample},
                                   {"dropped_events", report.dropped_events},
                                   {"samples_per_s", report.samples_per_second},
                                   {"checkpoint", report.checkpoint}};
  for (const auto& [layer, fraction] : report.dropped_spikes) object["dropped_spikes"][layer] = fraction;
  return object;
}

void print_confusion(const std::vector<std::vector<std::uint64_t>>& confusion) {
  if (confusion.empty() || confusion.size() > kPrintedClasses) return;
  std::string text = "\nconfusion (rows: label, columns: decision)\n     ";
  for (std::size_t decision = 0; decision < confusion.front().size(); ++decision)
    text += fmt::format("{:>6}", decision);
  text += "\n";
  for (std::size_t label = 0; label < confusion.size(); ++label) {
    text += fmt::format("{:>5}", label);
    for (const std::uint64_t count : confusion[label]) text += fmt::format("{:>6}", count);
    text += "\n";
  }
  print_text(text);
}

void print(const EvalReport& report) {
  std::vector<std::pair<std::string, std::string>> rows{
      {"checkpoint", report.checkpoint},
      {"samples", std::to_string(report.samples)},
      {"accuracy", percent(report.accuracy)},
      {"loss", fmt::format("{:.4f}", report.loss)},
      {"undecided", fmt::format("{} (a tie or silence: the lowest class is taken)", report.undecided)},
      {"dropped events", std::to_string(report.dropped_events)},
      {"input activity", fmt::format("{:.4f} spikes per channel and step", report.input_activity)}};
  for (const auto& [layer, activity] : report.activity) {
    rows.emplace_back("activity " + layer, fmt::format("{:.4f} spikes per neuron and step", activity));
  }
  for (const auto& [layer, fraction] : report.dropped_spikes)
    rows.emplace_back("over budget " + layer, percent(fraction) + " of its spikes");
  rows.emplace_back("synaptic operations", fmt::format("{:.0f} per sample", report.synaptic_operations_per_sample));
  rows.emplace_back("speed", fmt::format("{:.0f} samples/s", report.samples_per_second));
  print_table(rows);
  print_confusion(report.confusion);
}

void evaluate(const Options& options) {
  EvalOptions how;
  how.run = options.run;
  if (!options.data.empty()) how.data = options.data;
  if (!options.predictions.empty()) how.predictions = options.predictions;
  if (!options.record.empty()) {
    how.record = options.record.at(0);
    how.record_file = options.record.at(1);
  }
  how.threads = options.threads;
  how.overrides = options.set;
  if (!options.decision.empty()) how.overrides.push_back("loss.decision=" + options.decision);
  EvalReport report;
  run_interruptible([&](ProgressListener& listener) { report = evaluate_run(how, listener); });
  if (options.json) {
    print_json(to_json(report));
  } else {
    print(report);
  }
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("eval", "Evaluate a trained network on its test set, or on other data");
  verb->add_option("RUN", options->run, "Run folder (its best checkpoint, else the last), or a checkpoint in one")
      ->required();
  verb->add_option("--data", options->data, "Data instead of the run's test set")->type_name("PATH");
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  verb->add_option("--predictions", options->predictions, "Write a CSV: sample, label, decision, undecided, loss")
      ->type_name("FILE");
  verb->add_option("--record", options->record,
                   "Write LAYER.spikes (CSV: sample, step, neuron) or LAYER.membrane (NumPy: samples, steps, neurons)")
      ->expected(2)
      ->type_name("WHAT FILE");
  verb->add_option("--decision", options->decision,
                   "The same as --set loss.decision=KIND: auto, sum, mean, max, last or majority")
      ->type_name("KIND");
  verb->add_option("--threads", options->threads, "Worker threads; 0: as the run was configured")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  verb->add_option("--set", options->set, "Replace a setting of the run's configuration; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  verb->callback([=, &action] { action = [options] { evaluate(*options); }; });
}

}  // namespace spikeloom
