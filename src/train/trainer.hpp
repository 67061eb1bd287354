// The training loop: one batch, one epoch. Files, validation and the order of epochs are the business of io/train_run.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <spikeloom/configuration.hpp>
#include <spikeloom/dataset.hpp>

#include "core/progress.hpp"
#include "data/augmentation.hpp"
#include "engine/engine.hpp"
#include "train/activity_control.hpp"
#include "train/gradient_sum.hpp"
#include "train/optimizer.hpp"
#include "train/training_state.hpp"

namespace spikeloom {

/// What one epoch came to.
struct EpochSummary {
  int epoch = 0;  // from 1
  double loss = 0.0;
  double regulariser = 0.0;  // mean over batches
  double accuracy = 0.0;
  double learning_rate = 0.0;  // of the last batch
  double samples_per_second = 0.0;
  std::vector<std::size_t> never_fired;   // neurons, per layer
  std::vector<double> rate_costs;         // what holds activity_target by cost, after the epoch; per layer, as the next
  std::vector<double> window_low;         // of the next batch, in thresholds
  std::vector<double> dropped_spikes;     // fraction that found no room under spike_budget; per layer
  std::vector<double> dropped_gradients;  // the same of neurons that were active but did not spike
  EpochTotals totals;                     // activities already divided: per layer, mean over samples
};

class Trainer {
 public:
  /// Trains `engine` on `samples` of `data`, shuffled anew in every epoch. All must outlive the trainer; the engine has
  /// its parameters.
  Trainer(const Configuration& configuration, const SpikeDataset& data, std::vector<std::uint32_t> samples,
          Engine& engine, const ReadoutLoss& loss, ProgressListener& listener);

  Optimizer& optimizer() { return optimizer_; }
  const Optimizer& optimizer() const { return optimizer_; }
  const TrainingState& state() const { return state_; }
  TrainingState& state() { return state_; }
  /// Goes on from a state that was saved (with the optimiser's moments, which the caller restores).
  void restore(TrainingState state);

  /// Samples of an epoch.
  std::size_t samples() const { return samples_.size(); }
  bool epoch_finished() const { return state_.position >= samples_.size(); }
  /// One update: `accumulate` batches of the next `batch_size` samples of the epoch's order, or what is left of them.
  /// Throws NumericalError.
  void train_batch();
  /// Closes the epoch: counts it, warns of silent and saturated layers.
  EpochSummary finish_epoch();
  /// Tells the schedule the loss that the epoch is judged by (validation's, else training's).
  void judge_epoch(double loss);

 private:
  void order_samples();
  BatchResult train_part(std::size_t samples, ParameterUpdate& update, double gradient_clip);
  void count(const BatchResult& result, double input_activity, double data_seconds, double seconds);
  void report();
  void warn_of_extremes(const EpochSummary& summary);
  void clear_totals();
  double learning_rate() const;

  const Configuration& configuration_;
  Augmenter augmenter_;
  std::vector<std::uint32_t> samples_;
  Engine& engine_;
  const ReadoutLoss& loss_;
  ProgressListener& listener_;
  Optimizer optimizer_;
  ActivityController activity_;
  std::optional<GradientSum> sum_;  // where several batches make an update
  TrainingState state_;
  std::int64_t total_steps_ = 0;
  SpikeBatch batch_;
  std::vector<std::uint32_t> order_;  // of epoch order_of_
  int order_of_ = -1;
  std::vector<int> warned_;  // per layer: what it was last warned of
  std::chrono::steady_clock::time_point last_report_{};
};

}  // namespace spikeloom
