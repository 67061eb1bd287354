// spikeloom train: from a configuration to a run folder.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <spikeloom/error.hpp>
#include <spikeloom/run.hpp>
#include "console.hpp"
#include "interrupt.hpp"
#include "network/settings.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

struct Options {
  std::string configuration;
  std::string out;
  std::vector<std::string> set;
  std::optional<std::int64_t> seed;
  std::string seeds;
  std::optional<int> threads;
  std::optional<int> epochs;
  bool resume = false;
  std::string init_from;
  bool json = false;
};

std::vector<std::string> overrides_of(const Options& options) {
  std::vector<std::string> overrides = options.set;
  if (options.seed) overrides.push_back(fmt::format("seed={}", *options.seed));
  if (options.threads) overrides.push_back(fmt::format("engine.threads={}", *options.threads));
  if (options.epochs) overrides.push_back(fmt::format("training.epochs={}", *options.epochs));
  return overrides;
}

/// A run is continued with the configuration it was started with; with none in its folder, it was stopped before it
/// began.
std::filesystem::path configuration_of(const Options& options, bool& resume) {
  const std::filesystem::path of_run = std::filesystem::path(options.out) / "config.toml";
  std::error_code error;
  resume = options.resume && std::filesystem::exists(of_run, error);
  if (resume) return of_run;
  if (options.configuration.empty()) {
    throw UserError(
        fmt::format("{}: there is no run to resume (no config.toml); name a configuration to start one", options.out));
  }
  return options.configuration;
}

nlohmann::ordered_json to_json(const TrainSummary& summary) {
  const auto or_null = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
  };
  return {{"run", summary.run.string()},
          {"epochs", summary.epochs},
          {"stopped_early", summary.stopped_early},
          {"train_loss", summary.train_loss},
          {"train_accuracy", summary.train_accuracy},
          {"validation_loss", or_null(summary.validation_loss)},
          {"validation_accuracy", or_null(summary.validation_accuracy)},
          {"test_loss", or_null(summary.test_loss)},
          {"test_accuracy", or_null(summary.test_accuracy)},
          {"samples_per_s", summary.samples_per_second},
          {"seconds", summary.seconds}};
}

void print(const TrainSummary& summary) {
  const auto score = [](double loss, double accuracy) {
    return fmt::format("accuracy {}, loss {:.4f}", percent(accuracy), loss);
  };
  std::vector<std::pair<std::string, std::string>> rows{
      {"run", summary.run.string()},
      {"epochs", fmt::format("{}{}", summary.epochs, summary.stopped_early ? " (stopped early)" : "")},
      {"training", score(summary.train_loss, summary.train_accuracy)}};
  if (summary.validation_accuracy)
    rows.emplace_back("validation", score(summary.validation_loss.value_or(NAN), *summary.validation_accuracy));
  if (summary.test_accuracy) rows.emplace_back("test", score(summary.test_loss.value_or(NAN), *summary.test_accuracy));
  rows.emplace_back("speed", fmt::format("{:.0f} samples/s", summary.samples_per_second));
  rows.emplace_back("time", duration(summary.seconds));
  print_table(rows);
}

/// "1,2,3" are these seeds, "3" are the seeds 1 to 3.
std::vector<std::uint64_t> parse_seeds(const std::string& text) {
  constexpr std::uint64_t kMost = 1000;
  const auto refuse = [&](const std::string& part) {
    throw UserError(
        fmt::format("--seeds {}: \"{}\" is not allowed: give seeds from 0, separated by commas, or their "
                    "number, from 1 to {}, for the seeds 1 to it",
                    text, part, kMost));
  };
  std::vector<std::uint64_t> seeds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int64_t seed = -1;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, seed);
    if (error != std::errc() || stop != text.data() + end || seed < 0) refuse(text.substr(begin, end - begin));
    seeds.push_back(static_cast<std::uint64_t>(seed));
    begin = end + 1;
  }
  if (seeds.size() > 1) return seeds;
  const std::uint64_t count = seeds.front();
  if (count < 1 || count > kMost) refuse(text);
  seeds.clear();
  for (std::uint64_t seed = 1; seed <= count; ++seed) seeds.push_back(seed);
  return seeds;
}

nlohmann::ordered_json to_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  nlohmann::ordered_json object = {{"mean", spread->mean}, {"deviation", nullptr}};
  if (spread->deviation) object["deviation"] = *spread->deviation;
  return object;
}

nlohmann::ordered_json to_json(const SeedsSummary& summary) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (const TrainSummary& run : summary.runs) runs.push_back(to_json(run));
  return {{"run", summary.run.string()},
          {"seeds", summary.seeds},
          {"validation_accuracy", to_json(summary.validation_accuracy)},
          {"test_accuracy", to_json(summary.test_accuracy)},
          {"runs", runs}};
}

void print(const SeedsSummary& summary) {
  std::vector<std::pair<std::string, std::string>> rows{{"run", summary.run.string()}};
  for (std::size_t i = 0; i < summary.runs.size(); ++i) {
    const TrainSummary& run = summary.runs[i];
    std::string text = fmt::format("{} epochs{}", run.epochs, run.stopped_early ? " (stopped early)" : "");
    if (run.validation_accuracy) text += ", validation " + percent(*run.validation_accuracy);
    if (run.test_accuracy) text += ", test " + percent(*run.test_accuracy);
    rows.emplace_back(fmt::format("seed {}", summary.seeds[i]), text);
  }
  const auto add = [&](const char* name, const std::optional<Spread>& spread) {
    if (!spread) return;
    std::string text = fmt::format("accuracy {:.2f} %", 100.0 * spread->mean);
    if (spread->deviation) text += fmt::format(" +- {:.2f} (sample standard deviation)", 100.0 * *spread->deviation);
    rows.emplace_back(name, text);
  };
  add("validation", summary.validation_accuracy);
  add("test", summary.test_accuracy);
  print_table(rows);
}

/// The seeds that are asked for, or those of the folder that is resumed; none for an ordinary run.
std::vector<std::uint64_t> seeds_of(const Options& options) {
  if (!options.seeds.empty()) return parse_seeds(options.seeds);
  return options.resume ? seeds_of_folder(options.out) : std::vector<std::uint64_t>();
}

template <class Summary>
void show(const Options& options, const Summary& summary) {
  if (options.json) {
    print_json(to_json(summary));
  } else {
    print(summary);
  }
}

void train(const Options& options) {
  TrainOptions how;
  const std::vector<std::uint64_t> seeds = seeds_of(options);
  const Configuration configuration = load_configuration(configuration_of(options, how.resume), overrides_of(options));
  how.out = options.out;
  if (!options.init_from.empty()) how.init_from = options.init_from;
  how.stop = stop_on_signals();
  std::optional<ConsoleListener> console(std::in_place);
  if (seeds.empty()) {
    const TrainSummary summary = train_run(configuration, how, *console);
    console.reset();
    show(options, summary);
  } else {
    const SeedsSummary summary = train_seeds(configuration, seeds, how, *console);
    console.reset();
    show(options, summary);
  }
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("train", "Train a network: from a configuration to a run folder");
  CLI::Option* configuration =
      verb->add_option("CONFIG", options->configuration, "Configuration (TOML); with --resume the run's own is used");
  verb->add_option("--out", options->out, "Folder for the run; created if need be")->required()->type_name("DIR");
  verb->add_option("--set", options->set,
                   "Replace a setting, for example training.epochs=3 or layers.hidden1.threshold=1.2; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
  CLI::Option* seed = verb->add_option("--seed", options->seed, "The same as --set seed=N")
                          ->check(CLI::NonNegativeNumber)
                          ->type_name("N");
  verb->add_option("--seeds", options->seeds,
                   "Train with each of these seeds, or with the seeds 1 to N: a run each in DIR/seed-N, and mean and "
                   "spread of their accuracies")
      ->type_name("A,B,...|N")
      ->excludes(seed);
  verb->add_option("--threads", options->threads, "The same as --set engine.threads=N; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->type_name("N");
  verb->add_option("--epochs", options->epochs,
                   "The same as --set training.epochs=N; 0 writes the initial state and stops")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  CLI::Option* resume =
      verb->add_flag("--resume", options->resume, "Continue the run in DIR, to the same bits as if it had not stopped");
  verb->add_option("--init-from", options->init_from,
                   "Start from the weights of this checkpoint; layers are matched by name and shape")
      ->type_name("FILE")
      ->excludes(resume);
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  verb->add_flag_callback(
      "--help-settings",
      [] {
        print_text(settings_as_text());
        throw CLI::Success();
      },
      "List all settings of a configuration and exit");
  verb->footer("Ctrl-C saves at the next batch and stops; --resume goes on from there.");
  verb->callback([=, &action] {
    if (configuration->empty() && resume->empty()) throw CLI::RequiredError("CONFIG");
    action = [options] { train(*options); };
  });
}

}  // namespace spikeloom
