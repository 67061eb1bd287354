// spikeloom data info: what is in a data set, and what binning makes of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>
#include "data_report.hpp"
#include "network/settings.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

struct Options {
  std::string path;
  bool json = false;
  double step_ms = DataSpec{}.step_ms;
  ReadOptions read;
};

std::int64_t step_in_microseconds(double step_ms) {
  const Setting& setting = *find_setting("data", "step_ms");
  Configuration scratch;
  if (!setting.set({&scratch, nullptr, {}}, step_ms)) {
    throw UserError(fmt::format("--step-ms {} is not allowed: it must be {}", step_ms, setting.allowed));
  }
  return std::llround(step_ms * 1000.0);
}

void show(const Options& options) {
  ReadOptions read = options.read;
  read.binning.step_us = step_in_microseconds(options.step_ms);
  const DatasetDescription description = describe(read_dataset(options.path, read));
  if (options.json) {
    print_json(to_json(description));
  } else {
    print(description, read.binning);
  }
}

}  // namespace

void add_data_info(CLI::App& data, Action& action) {
  constexpr int kMany = 1 << 20;
  const auto options = std::make_shared<Options>();
  options->read.binning.steps = DataSpec{}.steps;
  CLI::App* verb = data.add_subcommand("info", "Show what is in a data set, and what binning makes of it");
  verb->add_option("PATH", options->path, "SHD-layout HDF5 file, or N-MNIST folder")->required();
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  verb->add_option("--step-ms", options->step_ms, "Length of a time step in ms")->capture_default_str()->type_name("X");
  verb->add_option("--steps", options->read.binning.steps, "Time steps T")
      ->check(CLI::Range(1, kMany))
      ->capture_default_str()
      ->type_name("T");
  verb->add_option("--channels", options->read.channels, "Channels of a recording; 0: what the format says")
      ->check(CLI::Range(0, kMany))
      ->type_name("N");
  verb->add_option("--channel-bin", options->read.binning.channel_bin, "Join this many neighbouring channels")
      ->check(CLI::Range(1, kMany))
      ->type_name("N");
  verb->add_flag("--counts", options->read.binning.counts,
                 "Count the events of a channel and step instead of merging them");
  const std::map<std::string, DataPart> parts{
      {"train", DataPart::train}, {"test", DataPart::test}, {"all", DataPart::all}};
  verb->add_option("--part", options->read.part, "train, test or all (default) of a folder that has both")
      ->transform(CLI::CheckedTransformer(parts).description(""))
      ->type_name("PART");
  verb->callback([=, &action] { action = [options] { show(*options); }; });
}

}  // namespace spikeloom
