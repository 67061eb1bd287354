// One configuration trained with several seeds: a folder of run folders, and what their scores have in common.
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include <spikeloom/error.hpp>
#include <spikeloom/run.hpp>

#include "core/progress.hpp"
#include "io/run_folder.hpp"

namespace spikeloom {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

void check(const std::vector<std::uint64_t>& seeds, const TrainOptions& options) {
  if (seeds.empty()) throw UserError("no seeds to train with; allowed: at least one");
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : seeds) {
    if (!seen.insert(seed).second) throw UserError(fmt::format("seed {} is named twice; seeds must differ", seed));
  }
  std::error_code error;
  const fs::path& out = options.out;
  if (out.empty()) throw UserError("the runs need a folder (--out DIR)");
  if (fs::exists(out, error) && !fs::is_directory(out, error))
    throw UserError(fmt::format("{}: is no folder; runs need a new or empty one", out.string()));
  if (fs::exists(RunFolder{out}.last(), error)) {
    throw UserError(fmt::format("{}: holds a run of one seed; name another folder for runs of several", out.string()));
  }
  if (!options.resume && fs::exists(RunFolder{out}.seeds(), error)) {
    throw UserError(
        fmt::format("{}: holds runs already; continue them with --resume, or name another folder", out.string()));
  }
  fs::create_directories(out, error);
  if (error) throw UserError(fmt::format("{}: can't be created: {}", out.string(), error.message()));
}

Json to_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"mean", spread->mean}, {"deviation", to_json(spread->deviation)}};
}

void write_summary(const SeedsSummary& summary) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < summary.runs.size(); ++i) {
    const TrainSummary& run = summary.runs[i];
    runs.push_back({{"seed", summary.seeds[i]},
                    {"epochs", run.epochs},
                    {"stopped_early", run.stopped_early},
                    {"train_accuracy", run.train_accuracy},
                    {"validation_accuracy", to_json(run.validation_accuracy)},
                    {"test_accuracy", to_json(run.test_accuracy)}});
  }
  const Json object = {{"seeds", summary.seeds},
                       {"runs", runs},
                       {"validation_accuracy", to_json(summary.validation_accuracy)},
                       {"test_accuracy", to_json(summary.test_accuracy)}};
  write_text(RunFolder{summary.run}.seeds(), object.dump(2) + "\n");
}

std::optional<Spread> spread_over(const std::vector<TrainSummary>& runs, std::optional<double> TrainSummary::*score) {
  std::vector<double> values;
  for (const TrainSummary& run : runs) {
    if (run.*score) values.push_back(*(run.*score));
  }
  return values.empty() ? std::nullopt : std::optional(spread_of(values));
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  if (values.empty()) throw InternalError("the spread of no values");
  const auto count = static_cast<double>(values.size());
  Spread spread;
  for (const double value : values) spread.mean += value;
  spread.mean /= count;
  if (values.size() < 2) return spread;
  double squares = 0.0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (count - 1.0));
  return spread;
}

std::vector<std::uint64_t> seeds_of_folder(const fs::path& folder) {
  const fs::path path = RunFolder{folder}.seeds();
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Json object = Json::parse(text, nullptr, false);
  const bool sound = object.is_object() && object.contains("seeds") && object["seeds"].is_array();
  std::vector<std::uint64_t> seeds;
  for (const Json& seed : sound ? object["seeds"] : Json::array()) {
    if (seed.is_number_unsigned()) seeds.push_back(seed.get<std::uint64_t>());
  }
  if (!sound || seeds.empty() || seeds.size() != object["seeds"].size())
    throw UserError(fmt::format("{}: is damaged: it needs \"seeds\", a list of whole numbers from 0", path.string()));
  return seeds;
}

SeedsSummary train_seeds(const Configuration& configuration, const std::vector<std::uint64_t>& seeds,
                         const TrainOptions& options, ProgressListener& listener) {
  check(seeds, options);
  SeedsSummary summary;
  summary.run = options.out;
  summary.seeds = seeds;
  Configuration of_seed = configuration;
  of_seed.seed = seeds.front();
  write_text(RunFolder{options.out}.configuration(), to_toml(of_seed));
  write_summary(summary);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    of_seed.seed = seeds[i];
    TrainOptions of_run = options;
    of_run.out = options.out / fmt::format("seed-{}", seeds[i]);
    listener.note(fmt::format("seed {} ({} of {})", seeds[i], i + 1, seeds.size()));
    try {
      summary.runs.push_back(train_run(of_seed, of_run, listener));
    } catch (const Interrupted& interrupted) {
      throw Interrupted(fmt::format("{} (seed {}, {} of {}; resume {} as a whole)", interrupted.what(), seeds[i], i + 1,
                                    seeds.size(), options.out.string()));
    }
    summary.validation_accuracy = spread_over(summary.runs, &TrainSummary::validation_accuracy);
    summary.test_accuracy = spread_over(summary.runs, &TrainSummary::test_accuracy);
    write_summary(summary);
  }
  return summary;
}

}  // namespace spikeloom
