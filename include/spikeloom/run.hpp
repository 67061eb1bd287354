// Training runs and their folders: the top of the library, what the command line and the bindings call.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <spikeloom/configuration.hpp>

namespace spikeloom {

class ProgressListener;

struct TrainOptions {
  std::filesystem::path out;                       // the run folder
  bool resume = false;                             // continue the run in `out`; its own config.toml is used
  std::optional<std::filesystem::path> init_from;  // start from these weights; layers matched by name and shape
  // Becomes true when the user interrupts: save at the next batch, then throw Interrupted; where there is nothing to
  // save yet (reading, initialising) or any more (testing), throw at once.
  const std::atomic<bool>* stop = nullptr;
};

struct TrainSummary {
  int epochs = 0;              // run in total
  bool stopped_early = false;  // by training.early_stopping, rather than after training.epochs
  double train_loss = 0.0;     // of the last epoch
  double train_accuracy = 0.0;
  std::optional<double> validation_loss;  // of the best epoch
  std::optional<double> validation_accuracy;
  std::optional<double> test_accuracy;  // of best.safetensors (last, without validation), if there is a test set
  std::optional<double> test_loss;
  double samples_per_second = 0.0;  // training, whole run
  double seconds = 0.0;
  std::filesystem::path run;
};

/// Trains. Creates or continues the run folder: config.toml, metrics.jsonl, last.safetensors, best.safetensors,
/// environment.json. A folder that already holds a run and no `resume` is a UserError. Throws UserError,
/// NumericalError, ResourceError, Interrupted (all that was trained is saved). Tells `listener` if the training loss of
/// the last epoch is above that of the first batch.
TrainSummary train_run(const Configuration& configuration, const TrainOptions& options, ProgressListener& listener);

/// Mean over runs and, of two or more, their sample standard deviation.
struct Spread {
  double mean = 0.0;
  std::optional<double> deviation;
};

/// The spread of some numbers, at least one.
Spread spread_of(const std::vector<double>& values);

struct SeedsSummary {
  std::filesystem::path run;
  std::vector<std::uint64_t> seeds;
  std::vector<TrainSummary> runs;  // one per seed, in their order
  std::optional<Spread> validation_accuracy;
  std::optional<Spread> test_accuracy;
};

/// Trains once with each seed, one after the other, into run folders `out`/seed-N. Beside them: config.toml, with the
/// first seed, and seeds.json, with the seeds and the scores so far. With `resume`, finished runs are only tested again
/// and others go on where they stopped. Throws as train_run; UserError also for no seed, or one named twice.
SeedsSummary train_seeds(const Configuration& configuration, const std::vector<std::uint64_t>& seeds,
                         const TrainOptions& options, ProgressListener& listener);

/// The seeds of a folder of train_seeds; none if it is no such folder. Throws UserError if its seeds.json is damaged.
std::vector<std::uint64_t> seeds_of_folder(const std::filesystem::path& folder);

struct EvalOptions {
  std::filesystem::path run;                         // a run folder, or a checkpoint file inside one
  std::optional<std::filesystem::path> data;         // instead of the run's test set
  std::optional<std::filesystem::path> predictions;  // CSV: sample, label, decision, undecided, loss
  std::optional<std::string> record;                 // LAYER.spikes or LAYER.membrane
  std::optional<std::filesystem::path>
      record_file;  // spikes: CSV sample, step, neuron; membrane: NumPy .npy (samples, steps, neurons) float32
  int threads = 0;
  std::vector<std::string> overrides;  // --set key=value on the run's configuration
};

struct EvalReport {
  std::uint64_t samples = 0;
  double loss = 0.0;  // mean over samples
  double accuracy = 0.0;
  std::uint64_t undecided = 0;
  std::vector<std::vector<std::uint64_t>> confusion;  // [label][decision]
  std::vector<std::pair<std::string, double>>
      activity;  // per layer: spikes per neuron and step (spiking layers), in order
  std::vector<std::pair<std::string, double>>
      dropped_spikes;  // per layer with a spike_budget: fraction of its spikes that found no room
  double synaptic_operations_per_sample = 0.0;
  double input_activity = 0.0;
  std::uint64_t dropped_events = 0;
  double samples_per_second = 0.0;
  std::string checkpoint;  // which file was evaluated
};

EvalReport evaluate_run(const EvalOptions& options, ProgressListener& listener);

}  // namespace spikeloom
