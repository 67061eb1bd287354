// Evaluation of a run's weights on its test set or on other data.
#include <fmt/format.h>

#include <new>

#include <spikeloom/error.hpp>
#include <spikeloom/run.hpp>

#include "core/progress.hpp"
#include "io/checkpoint.hpp"
#include "io/records.hpp"
#include "io/run_data.hpp"
#include "train/evaluate.hpp"
#include "train/losses.hpp"

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

/// The weights that are meant: a file as such, of a folder the best, else the last.
fs::path checkpoint_of(const fs::path& run) {
  std::error_code error;
  if (!fs::exists(run, error)) throw UserError(fmt::format("{}: no such run folder or checkpoint", run.string()));
  if (!fs::is_directory(run, error)) return run;
  for (const char* name : {"best.safetensors", "last.safetensors"}) {
    if (fs::exists(run / name, error)) return run / name;
  }
  throw UserError(
      fmt::format("{}: holds neither best.safetensors nor last.safetensors; a run folder is needed", run.string()));
}

Configuration configuration_of(const EvalOptions& options, const fs::path& checkpoint) {
  const fs::path file = checkpoint.parent_path() / "config.toml";
  std::error_code error;
  if (!fs::exists(file, error)) {
    throw UserError(
        fmt::format("{}: is missing; a checkpoint is evaluated with the configuration beside it", file.string()));
  }
  Configuration configuration = load_configuration(file, options.overrides);
  DataSpec& data = configuration.data;
  if (configuration.network.channels <= 0)
    configuration.network.channels = (data.channels + data.channel_bin - 1) / data.channel_bin;
  validate(configuration.network);
  return configuration;
}

EvalReport report_of(const Evaluation& evaluation, const NetworkSpec& network) {
  EvalReport report;
  report.samples = evaluation.samples;
  report.loss = evaluation.loss;
  report.accuracy = evaluation.accuracy;
  report.undecided = evaluation.undecided;
  report.confusion = evaluation.confusion;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    if (network.layers[l].spiking()) report.activity.emplace_back(network.layers[l].name, evaluation.activity[l]);
    if (network.layers[l].spike_budget > 0)
      report.dropped_spikes.emplace_back(network.layers[l].name, evaluation.dropped_spikes[l]);
  }
  report.synaptic_operations_per_sample = evaluation.synaptic_operations_per_sample;
  report.input_activity = evaluation.input_activity;
  report.samples_per_second =
      evaluation.seconds > 0.0 ? static_cast<double>(evaluation.samples) / evaluation.seconds : 0.0;
  return report;
}

EvalReport evaluate(const EvalOptions& options, ProgressListener& listener) {
  const fs::path checkpoint = checkpoint_of(options.run);
  const Configuration configuration = configuration_of(options, checkpoint);
  const NetworkSpec& network = configuration.network;
  const std::unique_ptr<ReadoutLoss> loss = make_readout_loss(configuration.loss, network);
  const Parameters parameters = read_parameters(SafetensorsReader(checkpoint), network);
  std::optional<RecordRequest> record;
  if (options.record) record = parse_record_request(network, *options.record);
  if (record && !options.record_file) throw UserError("--record needs a file to write to");
  const DataSelection data = read_test_data(configuration, options.data.value_or(fs::path()), listener);

  const int wanted = options.threads > 0 ? options.threads : configuration.engine.threads;
  WorkerTeam team(wanted > 0 ? wanted : available_cores());
  Engine engine(network,
                make_plan(network, configuration.engine.mode, team.size(), configuration.engine.precision,
                          configuration.training.bptt_steps),
                team);
  engine.import_parameters(parameters);
  const Evaluation evaluation = evaluate_samples(engine, *loss, *data.data, data.samples,
                                                 configuration.training.batch_size, "evaluating", listener);
  if (options.predictions) write_predictions(*options.predictions, data, evaluation);
  if (record) write_record(*options.record_file, *record, engine, data, listener);
  EvalReport report = report_of(evaluation, network);
  report.dropped_events = data.data->report().dropped_late;
  report.checkpoint = checkpoint.string();
  return report;
}

}  // namespace

EvalReport evaluate_run(const EvalOptions& options, ProgressListener& listener) {
  try {
    return evaluate(options, listener);
  } catch (const std::bad_alloc&) {
    throw ResourceError("memory ran out while evaluating; a smaller batch (--set training.batch_size=N) needs less");
  }
}

}  // namespace spikeloom
