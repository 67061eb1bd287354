#include "io/run_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const SpikeDataset> read(const fs::path& path, const Configuration& configuration, DataPart part,
                                         ProgressListener& listener) {
  const DataSpec& spec = configuration.data;
  ReadOptions options;
  options.binning.step_us = std::llround(spec.step_ms * 1000.0);
  options.binning.steps = spec.steps;
  options.binning.channel_bin = spec.channel_bin;
  options.binning.counts = spec.counts;
  options.channels = spec.channels;
  options.classes = spec.classes > 0 ? spec.classes : configuration.network.outputs();
  options.part = part;
  options.progress = [&](std::size_t recordings) {
    const std::string so_far = recordings == 0 ? "" : fmt::format(", {} recordings so far", recordings);
    listener.progress("reading", 0, 1, path.string() + so_far);
  };
  options.progress(0);
  auto data = std::make_shared<const SpikeDataset>(read_dataset(path, options));
  listener.progress("reading", 1, 1, path.string());
  const BinningReport& report = data->report();
  const auto share = [&](std::uint64_t count) {
    return report.events == 0 ? 0.0 : 100.0 * static_cast<double>(count) / static_cast<double>(report.events);
  };
  listener.note(fmt::format(
      "{}: {} samples, {} events; dropped {} ({:.2f} %) at or beyond {} ms, merged {} ({:.1f} %) within a step",
      path.string(), data->size(), report.events, report.dropped_late, share(report.dropped_late),
      spec.step_ms * spec.steps, report.merged, share(report.merged)));
  return data;
}

DataSelection everything(std::shared_ptr<const SpikeDataset> data) {
  DataSelection selection{std::move(data), {}};
  selection.samples.resize(selection.data->size());
  std::iota(selection.samples.begin(), selection.samples.end(), 0U);
  return selection;
}

/// Samples of both ascending lists.
std::vector<std::uint32_t> common(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

bool has_parts(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "Train", ignored) && fs::is_directory(folder / "Test", ignored);
}

bool same_data(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return !b.empty() && fs::equivalent(a, b, error) && !error && !has_parts(a);
}

void check_channels(const SpikeDataset& data, const Configuration& configuration, const fs::path& path) {
  if (data.channels() == configuration.network.channels) return;
  throw UserError(fmt::format("{}: {} channels after channel_bin = {}; allowed: {}, as the network's input has",
                              path.string(), data.channels(), configuration.data.channel_bin,
                              configuration.network.channels));
}

DataPart training_part(const DataSpec& spec) { return spec.folds > 0 ? DataPart::all : DataPart::train; }

/// Takes the validation set out of what is left of train.
void split_validation(RunData& run, const Configuration& configuration, ProgressListener& listener) {
  const DataSpec& spec = configuration.data;
  if (!spec.validation_file.empty()) {
    run.validation = everything(read(spec.validation_file, configuration, DataPart::all, listener));
    check_channels(*run.validation.data, configuration, spec.validation_file);
    return;
  }
  if (spec.validation_fraction <= 0.0 && spec.validation_speakers.empty()) return;
  const SpikeDataset& data = *run.train.data;
  const Split split = spec.validation_fraction > 0.0
                          ? split_fraction(data, spec.validation_fraction, configuration.seed)
                          : split_speakers(data, spec.validation_speakers);
  run.validation = {run.train.data, common(run.train.samples, split.held_out)};
  run.train.samples = common(run.train.samples, split.train);
  if (run.validation.empty())
    throw UserError(fmt::format("data.validation: no sample of {} is left for it", spec.train.string()));
}

}  // namespace

RunData read_run_data(Configuration& configuration, ProgressListener& listener) {
  DataSpec& spec = configuration.data;
  RunData run;
  run.train = everything(read(spec.train, configuration, training_part(spec), listener));
  spec.channels = run.train.data->recorded_channels();
  spec.classes = spec.classes > 0 ? spec.classes : configuration.network.outputs();
  configuration.network.channels = run.train.data->channels();
  if (spec.folds > 0) {
    const Split split = split_fold(*run.train.data, spec.fold, spec.folds);
    run.test = {run.train.data, split.held_out};
    run.train.samples = split.train;
  } else if (!spec.test.empty()) {
    if (same_data(spec.train, spec.test)) {
      listener.warning(fmt::format("data.test is the same as data.train ({}): its accuracy says nothing about new data",
                                   spec.test.string()));
    }
    run.test = everything(read(spec.test, configuration, DataPart::test, listener));
    check_channels(*run.test.data, configuration, spec.test);
  }
  if (same_data(spec.train, spec.validation_file)) {
    listener.warning(fmt::format("data.validation is the same as data.train ({}): it can't choose the best epoch",
                                 spec.train.string()));
  }
  split_validation(run, configuration, listener);
  if (run.train.empty()) throw UserError(fmt::format("{}: no sample is left to train on", spec.train.string()));
  return run;
}

DataSelection read_test_data(const Configuration& configuration, const fs::path& path, ProgressListener& listener) {
  const DataSpec& spec = configuration.data;
  const bool fold = path.empty() && spec.folds > 0;
  const fs::path& source = !path.empty() ? path : fold ? spec.train : spec.test;
  if (source.empty())
    throw UserError("data.test is not set in the run's configuration; name the data to evaluate (eval --data PATH)");
  // Of a folder with both parts the test part is meant; one that has only the other is what the user asked for.
  const bool only_train = !path.empty() && fs::is_directory(source / "Train") && !has_parts(source);
  DataSelection test =
      everything(read(source, configuration, fold || only_train ? DataPart::all : DataPart::test, listener));
  check_channels(*test.data, configuration, source);
  if (fold) test.samples = split_fold(*test.data, spec.fold, spec.folds).held_out;
  return test;
}

}  // namespace spikeloom
