// Everything of a run that is neither weights nor the optimiser's moments: what a checkpoint must hold to go on to the
// same bits, mid-epoch included.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "train/activity_control.hpp"
#include "train/schedule.hpp"

namespace spikeloom {

/// Sums over the batches of the running epoch.
struct EpochTotals {
  std::uint64_t samples = 0;
  std::uint64_t batches = 0;
  std::uint64_t correct = 0;
  std::uint64_t undecided = 0;
  double loss = 0.0;            // over samples
  double regulariser = 0.0;     // over batches
  double input_activity = 0.0;  // per layer, weighted by samples, like the next two
  std::vector<double> activity;
  std::vector<double> active_fraction;
  std::vector<double> dense_forward;  // batches, per layer
  std::vector<double> dense_backward;
  std::vector<std::vector<std::uint8_t>>
      fired;  // per layer and neuron: 1 if it has spiked; empty for layers that don't spike
  // Of layers with a spike_budget: ids that asked for room in their lists, and those that found none (BudgetCounts).
  std::vector<double> budget_spikes;
  std::vector<double> dropped_spikes;
  std::vector<double> budget_gradients;
  std::vector<double> dropped_gradients;
  std::uint64_t saved_state_bytes = 0;  // largest of a batch
  double forward_seconds = 0.0;
  double backward_seconds = 0.0;
  double update_seconds = 0.0;
  double data_seconds = 0.0;
  double seconds = 0.0;  // all of them and what lies between
};

/// The epoch whose weights best.safetensors holds.
struct BestEpoch {
  int epoch = 0;
  double accuracy = 0.0;
  double loss = 0.0;
};

struct TrainingState {
  int epoch = 0;               // complete ones
  std::uint64_t position = 0;  // samples of the running epoch that are trained on
  std::int64_t step = 0;       // updates in the whole run
  EpochTotals totals;          // of the running epoch
  ActivityState activity;
  PlateauState plateau;
  std::optional<BestEpoch> best;     // by validation
  std::optional<double> first_loss;  // of the first batch: mean over its samples
  double last_loss = 0.0;            // training loss and accuracy of the last complete epoch
  double last_accuracy = 0.0;
  double seconds = 0.0;       // spent in training, whole run
  std::uint64_t samples = 0;  // trained on in the whole run
};

}  // namespace spikeloom
