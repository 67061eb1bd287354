// Forward and backward over a batch, following a plan.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <spikeloom/network.hpp>
#include "core/worker_team.hpp"
#include "data/spike_batch.hpp"
#include "engine/outgoing.hpp"
#include "engine/readout_loss.hpp"
#include "engine/spike_lists.hpp"
#include "network/parameters.hpp"
#include "plan/plan.hpp"

namespace spikeloom {

/// Where a block of parameters belongs. Blocks are a tile's weights, its recurrent weights and its biases; a block's
/// storage order is the engine's own, and so is that of whatever an optimiser keeps beside it.
/// Engine::gather_canonical turns it into the canonical order.
struct BlockId {
  int layer = 0;
  int tile = 0;
  ParameterKind parameter = ParameterKind::weight;
  auto operator<=>(const BlockId&) const = default;
};

/// What happens to a block of parameters when its gradient is complete, in pieces that together are the block, once per
/// batch; blocks in any order. Several workers may bring pieces at the same time, of the same block, too.
class ParameterUpdate {
 public:
  virtual ~ParameterUpdate() = default;
  /// `values` and `gradient` hold `count` floats, those of the block from `first` on (padding included; padded
  /// gradients are zero and padded values must stay zero).
  virtual void apply(BlockId block, std::size_t first, float* values, const float* gradient, std::size_t count) = 0;
};

struct LayerStatistics {
  double activity = 0.0;         // spikes per neuron, step and sample; for the last, non-spiking layer 0
  double active_fraction = 0.0;  // |active set| per neuron, step and sample (0 when only the forward pass ran)
  std::uint64_t spikes = 0;
  std::uint64_t active = 0;
  std::uint64_t synaptic_operations = 0;    // input events, and own ones that come back, times outputs of the layer
  std::vector<std::uint32_t> spike_counts;  // per neuron of a spiking layer: spikes in the batch
  std::vector<std::uint8_t> were_active;    // of a layer with rescue_active, per neuron: 1 if it was in the active set
  bool forward_dense = false;               // how the layer was computed in this batch; of chunks, in any
  bool backward_dense = false;
  BudgetCounts budget;  // of a layer with a spike_budget
};

struct BatchResult {
  double loss = 0.0;         // sum over samples of the configured loss (not divided), without regularisers
  double regulariser = 0.0;  // of this batch
  std::uint32_t correct = 0;
  std::uint32_t undecided = 0;
  std::vector<int> decisions;                   // per sample
  std::vector<double> losses;                   // per sample
  std::vector<std::uint8_t> undecided_samples;  // per sample: 1 for a tie or silence
  std::vector<LayerStatistics> layers;          // one per layer
  double forward_seconds = 0.0;
  double backward_seconds = 0.0;
  double update_seconds = 0.0;  // the optimiser's share where it runs as a pass of its own (gradient clipping), else
                                // measured inside the backward pass
  std::uint64_t saved_state_bytes = 0;  // what was kept from the forward pass for the backward pass; of chunks, the
                                        // most, with the outputs of all
};

/// Spike or membrane record of one layer: `spikes` as a SpikeBatch; `membrane` (samples, steps, neurons) floats.
struct LayerRecord {
  SpikeBatch spikes;
  std::vector<float> membrane;
};

/// What a forward pass counts of a spiking layer.
struct LayerCounts {
  std::vector<std::uint32_t> received;  // spikes from each of the neurons that the layer's weights come from
  double activity = 0.0;                // spikes of the layer per neuron, step and sample
};

class Engine {
 public:
  Engine(const NetworkSpec& network, const Plan& plan, WorkerTeam& team);
  ~Engine();

  const NetworkSpec& network() const;
  /// Who does the work; free between the calls below.
  WorkerTeam& team() const;
  void import_parameters(const Parameters& parameters);
  Parameters export_parameters() const;

  /// Length of a block's storage, for optimisers.
  std::size_t block_size(BlockId block) const;
  /// All blocks, in order of layer, tile, then parameter.
  std::vector<BlockId> blocks() const;
  /// Values that an optimiser keeps per block, from and to the canonical order of LayerParameters.
  std::vector<float> gather_canonical(int layer, ParameterKind parameter,
                                      const std::vector<const float*>& blocks) const;
  void scatter_canonical(int layer, ParameterKind parameter, std::span<const float> canonical,
                         const std::vector<float*>& blocks) const;

  /// Lower end of every spiking layer's surrogate window, in units of its threshold, for the batches to come
  /// (annealing). NaN: the layer's own.
  void set_window_low(double units_of_threshold);
  /// The same of one spiking layer.
  void set_window_low(int layer, double units_of_threshold);
  /// Adds `cost` times the mean rate of a spiking layer (over its neurons, the steps and samples of the batch) to the
  /// loss of the batches to come; a negative cost asks for spikes. BatchResult::regulariser counts it.
  void set_rate_cost(int layer, double cost);

  /// What the dropout of the training batches to come is drawn from; to be set before each.
  void set_dropout(const DropoutDraw& draw);

  /// Forward pass and loss; nothing is kept.
  BatchResult evaluate(const SpikeBatch& batch, const ReadoutLoss& loss);
  /// Forward pass of layers up to and including `layer`, which spikes, for initialisation from data.
  LayerCounts count(const SpikeBatch& batch, int layer);
  /// The same of any layer, recording it: whole recordings, also where gradients are truncated. With `input_current`,
  /// `membrane` holds the layer's input k (W s + b) instead, without what comes back from the layer itself.
  LayerRecord record(const SpikeBatch& batch, int layer, bool spikes, bool membrane, bool input_current = false);
  /// One training step: forward, loss, backward; `update` is applied last. With `gradient_clip` > 0 the gradient is
  /// scaled to at most that global norm.
  BatchResult train_step(const SpikeBatch& batch, const ReadoutLoss& loss, ParameterUpdate& update,
                         double gradient_clip = 0.0);
  /// Hands every block to `update` between batches, with a gradient of no meaning: for updates from gradients that were
  /// kept elsewhere.
  void update_parameters(ParameterUpdate& update);
  /// The gradient of the mean loss in canonical order, without an update (tests, reports).
  BatchResult gradient(const SpikeBatch& batch, const ReadoutLoss& loss, Parameters& gradient);

  /// Spikes and active sets of a spiking layer in the last batch, or its last chunk (active: of a training batch), for
  /// tests.
  const SpikeLists& spikes(int layer) const;
  SpikeLists active(int layer);
  /// What of the former reached the layer above; after record(), what would.
  SpikeRows sent_spikes(int layer) const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace spikeloom
