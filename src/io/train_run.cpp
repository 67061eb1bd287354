// The order of a run: data, network, initial weights, epochs, files.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <new>
#include <utility>

#include <spikeloom/error.hpp>
#include <spikeloom/run.hpp>

#include "core/progress.hpp"
#include "core/random.hpp"
#include "io/checkpoint.hpp"
#include "io/environment.hpp"
#include "io/metrics_log.hpp"
#include "io/run_data.hpp"
#include "io/run_folder.hpp"
#include "train/evaluate.hpp"
#include "train/initialise.hpp"
#include "train/losses.hpp"

namespace spikeloom {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kInitialisingSamples = 128;
constexpr double kDiverged = 1.1;  // of the first loss; one batch measures it to a few percent
// An epoch may take hours; what a power cut costs should not. The time of saving changes no bit of the result.
constexpr auto kSaveEvery = std::chrono::minutes(2);

/// Refuses what can't become a run before any work is done.
void check_folder(const RunFolder& folder, bool resume) {
  std::error_code error;
  if (folder.path.empty()) throw UserError("the run needs a folder (--out DIR)");
  if (fs::exists(folder.path, error) && !fs::is_directory(folder.path, error)) {
    throw UserError(fmt::format("{}: is no folder; a run needs a new or empty one", folder.path.string()));
  }
  if (!resume && fs::exists(folder.last(), error)) {
    throw UserError(fmt::format("{}: holds a run already; continue it with --resume, or name another folder",
                                folder.path.string()));
  }
  if (fs::exists(folder.seeds(), error)) {
    throw UserError(fmt::format("{}: holds runs of several seeds; continue them with --resume, or name another folder",
                                folder.path.string()));
  }
}

void make_folder(const RunFolder& folder) {
  std::error_code error;
  fs::create_directories(folder.path, error);
  if (error == std::errc::no_space_on_device)
    throw ResourceError(fmt::format("{}: can't be created: the disk is full", folder.path.string()));
  if (error) throw UserError(fmt::format("{}: can't be created: {}", folder.path.string(), error.message()));
}

/// Files that a killed process left half written.
void remove_partial_files(const RunFolder& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.path, ignored)) {
    if (entry.path().filename().string().find(".partial-") != std::string::npos) fs::remove(entry.path(), ignored);
  }
}

/// Weights, gradient and the optimiser's moments, in bytes.
double parameter_bytes(const Configuration& configuration) {
  double parameters = 0.0;
  for (std::size_t l = 0; l < configuration.network.layers.size(); ++l) {
    parameters += static_cast<double>(configuration.network.layers[l].size) * configuration.network.inputs_of(l);
  }
  const double copies = configuration.optimizer.kind == OptimizerKind::sgd ? 3.0 : 4.0;
  return copies * sizeof(float) * parameters;
}

void check_memory(const Configuration& configuration) {
  const double needed = parameter_bytes(configuration);
  const auto available = static_cast<double>(available_memory());
  if (available == 0.0 || needed < available) return;
  throw ResourceError(fmt::format(
      "the network's weights, gradients and optimiser state need {:.1f} GB of memory, and {:.1f} GB are available",
      needed * 1e-9, available * 1e-9));
}

class Run {
 public:
  Run(const Configuration& configuration, const TrainOptions& options, ProgressListener& listener)
      : configuration_(configuration),
        options_(options),
        listener_(listener),
        folder_{options.out},
        before_training_(
            listener, options.stop,
            fmt::format("{}: stopped before training began; there is nothing new to save", options.out.string())),
        data_((check_folder(folder_, options.resume), read_data())),
        threads_(configuration.engine.threads > 0 ? configuration.engine.threads : available_cores()),
        team_((validate(configuration_.network), check_memory(configuration_), threads_)),
        engine_(configuration_.network,
                make_plan(configuration_.network, configuration_.engine.mode, threads_, configuration_.engine.precision,
                          configuration_.training.bptt_steps),
                team_),
        loss_(make_readout_loss(configuration_.loss, configuration_.network)),
        trainer_(configuration_, *data_.train.data, data_.train.samples, engine_, *loss_, listener) {}

  TrainSummary train() {
    start();
    while (trainer_.state().epoch < configuration_.training.epochs && !stops_early()) {
      run_epoch();
      finish_epoch();
    }
    if (stops_early()) {
      listener_.note(fmt::format("stopped after epoch {}: the validation of epoch {} was not bettered in {} epochs",
                                 trainer_.state().epoch, trainer_.state().best->epoch,
                                 trainer_.state().epoch - trainer_.state().best->epoch));
    }
    warn_of_divergence();
    return summarise();
  }

 private:
  /// Ctrl-C and its like also reach the process in which a file is read, and may end that one first.
  RunData read_data() {
    try {
      return read_run_data(configuration_, before_training_);
    } catch (const UserError&) {
      before_training_.throw_if_stopped();
      throw;
    }
  }

  void start() {
    make_folder(folder_);
    remove_partial_files(folder_);
    const bool resumed = options_.resume && fs::exists(folder_.last());
    if (resumed) {
      restore_checkpoint(SafetensorsReader(folder_.last()), configuration_, engine_, trainer_);
      listener_.note(fmt::format("resuming after {} epochs and {} samples of the next", trainer_.state().epoch,
                                 trainer_.state().position));
    } else {
      initialise();
    }
    write_text(folder_.configuration(), to_toml(configuration_));
    write_text(folder_.environment(), environment_as_json(threads_));
    metrics_.emplace(folder_.metrics(), trainer_.state().epoch);
    if (!resumed) {
      write_weights(folder_.best(), configuration_, engine_, trainer_.state());
      save();
    }
    last_save_ = Clock::now();
  }

  void initialise() {
    Parameters parameters = initial_parameters(configuration_.network, configuration_.seed);
    std::vector<bool> given;
    if (options_.init_from) {
      const MatchedLayers matched =
          copy_matching_layers(SafetensorsReader(*options_.init_from), configuration_.network, parameters);
      listener_.note(matched.text);
      given = matched.weights;
    }
    std::vector<std::uint32_t> samples = data_.train.samples;
    const std::vector<std::uint32_t> order =
        RandomStream(configuration_.seed, "initialise").permutation(samples.size());
    samples.resize(std::min(samples.size(), kInitialisingSamples));
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = data_.train.samples[order[i]];
    initialise_from_data(engine_, parameters, *data_.train.data, samples, given, before_training_);
  }

  void save() {
    write_checkpoint(folder_.last(), configuration_, engine_, trainer_);
    last_save_ = Clock::now();
  }

  void run_epoch() {
    for (;;) {
      if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
        save();
        throw Interrupted(fmt::format(
            "{}: stopped in epoch {} after {} of {} samples, and saved; --resume goes on from here",
            folder_.path.string(), trainer_.state().epoch + 1, trainer_.state().position, trainer_.samples()));
      }
      if (trainer_.epoch_finished()) return;
      trainer_.train_batch();
      if (Clock::now() - last_save_ > kSaveEvery && !trainer_.epoch_finished()) save();
    }
  }

  /// Files in this order: a kill between two of them leaves a last.safetensors that knows nothing of the epoch, which
  /// is then trained again to the same bits, and lines and weights beside it that are written again.
  void finish_epoch() {
    const EpochSummary summary = trainer_.finish_epoch();
    std::optional<Evaluation> validation;
    if (!data_.validation.empty()) validation = evaluate(data_.validation, "validating", listener_);
    trainer_.judge_epoch(validation ? validation->loss : summary.loss);
    const bool best = note_best(summary, validation);
    metrics_->append(configuration_.network, summary, validation);
    if (best) write_weights(folder_.best(), configuration_, engine_, trainer_.state());
    save();
    tell(summary, validation);
  }

  /// True if this epoch's weights are the best so far: by validation accuracy, equals by loss; without validation
  /// always.
  bool note_best(const EpochSummary& summary, const std::optional<Evaluation>& validation) {
    if (!validation) return true;
    std::optional<BestEpoch>& best = trainer_.state().best;
    const bool better = !best || validation->accuracy > best->accuracy ||
                        (validation->accuracy == best->accuracy && validation->loss < best->loss);
    if (better) best = BestEpoch{summary.epoch, validation->accuracy, validation->loss};
    return better;
  }

  /// A function of what the checkpoint holds anyway, so a resumed run stops where it would have.
  bool stops_early() const {
    const int patience = configuration_.training.early_stopping;
    const TrainingState& state = trainer_.state();
    return patience > 0 && state.best && state.epoch - state.best->epoch >= patience;
  }

  Evaluation evaluate(const DataSelection& selection, const std::string& work, ProgressListener& listener) {
    return evaluate_samples(engine_, *loss_, *selection.data, selection.samples, configuration_.training.batch_size,
                            work, listener);
  }

  void tell(const EpochSummary& summary, const std::optional<Evaluation>& validation) {
    std::string line = fmt::format("epoch {}/{}: loss {:.4f}, accuracy {:.2f} %", summary.epoch,
                                   configuration_.training.epochs, summary.loss, 100.0 * summary.accuracy);
    if (validation)
      line +=
          fmt::format(", validation loss {:.4f}, accuracy {:.2f} %", validation->loss, 100.0 * validation->accuracy);
    line += fmt::format(", {:.0f} samples/s", summary.samples_per_second);
    for (std::size_t l = 0; l < configuration_.network.layers.size(); ++l) {
      const LayerSpec& layer = configuration_.network.layers[l];
      if (!layer.spiking()) continue;
      line += fmt::format(", {} {:.4f}", layer.name, summary.totals.activity[l]);
      if (summary.never_fired[l] > 0)
        line += fmt::format(" ({} of {} never fired)", summary.never_fired[l], layer.size);
      if (layer.spike_budget > 0) {
        line += fmt::format(" (over budget: {:.2f} % of its spikes, {:.2f} % of its gradients)",
                            100.0 * summary.dropped_spikes[l], 100.0 * summary.dropped_gradients[l]);
      }
    }
    listener_.note(line);
  }

  void warn_of_divergence() {
    const TrainingState& state = trainer_.state();
    if (!state.first_loss || !(state.last_loss > kDiverged * *state.first_loss)) return;
    listener_.warning(fmt::format(
        "training diverged: its loss was {:.4g} in the first batch and is {:.4g} in the last epoch; a smaller "
        "optimizer.learning_rate or optimizer.gradient_clip may help",
        *state.first_loss, state.last_loss));
  }

  TrainSummary summarise() {
    const TrainingState& state = trainer_.state();
    TrainSummary summary;
    summary.epochs = state.epoch;
    summary.stopped_early = stops_early();
    summary.train_loss = state.last_loss;
    summary.train_accuracy = state.last_accuracy;
    if (state.best) {
      summary.validation_loss = state.best->loss;
      summary.validation_accuracy = state.best->accuracy;
    }
    if (!data_.test.empty() && state.epoch > 0) {
      engine_.import_parameters(read_parameters(SafetensorsReader(folder_.best()), configuration_.network));
      StoppableListener listener(
          listener_, options_.stop,
          fmt::format("{}: stopped while testing; the trained network is saved", folder_.path.string()));
      const Evaluation test = evaluate(data_.test, "testing", listener);
      summary.test_accuracy = test.accuracy;
      summary.test_loss = test.loss;
    }
    summary.seconds = state.seconds;
    summary.samples_per_second = state.seconds > 0.0 ? static_cast<double>(state.samples) / state.seconds : 0.0;
    summary.run = folder_.path;
    return summary;
  }

  Configuration configuration_;
  const TrainOptions& options_;
  ProgressListener& listener_;
  RunFolder folder_;
  StoppableListener before_training_;
  RunData data_;
  int threads_;
  WorkerTeam team_;
  Engine engine_;
  std::unique_ptr<ReadoutLoss> loss_;
  Trainer trainer_;
  std::optional<MetricsLog> metrics_;
  Clock::time_point last_save_ = Clock::now();
};

}  // namespace

TrainSummary train_run(const Configuration& configuration, const TrainOptions& options, ProgressListener& listener) {
  try {
    return Run(configuration, options, listener).train();
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format(
        "memory ran out; weights, gradients and optimiser state alone take {:.2f} GB, and the state of a batch of {} "
        "comes on top (a smaller training.batch_size needs less)",
        parameter_bytes(configuration) * 1e-9, configuration.training.batch_size));
  }
}

}  // namespace spikeloom
