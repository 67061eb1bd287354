// One layer at run time: its weights by tile, the constants of its neurons, and what the forward pass of a batch keeps
// for the backward pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <spikeloom/network.hpp>
#include "core/aligned_buffer.hpp"
#include "engine/carried_state.hpp"
#include "engine/outgoing.hpp"
#include "engine/spike_lists.hpp"
#include "kernels/kernels.hpp"
#include "network/parameters.hpp"
#include "plan/plan.hpp"

namespace spikeloom {

/// What a tile keeps of a batch: for every sample and step the list of columns that spiked or are active. Nothing here
/// has the size of steps * neurons but `counts`, one byte for a tile and step.
struct TileTrace {
  std::vector<std::uint8_t> counts;         // samples * steps: entries of the row
  std::vector<std::uint8_t> codes;          // entries, and padding: column and flags (kernels.hpp)
  std::vector<float> derivatives;           // entries: h(u - theta)
  std::vector<float> membranes;             // entries: u, only for the gradient through the reset
  std::vector<std::size_t> entry_start;     // samples + 1
  std::vector<std::size_t> active_start;    // samples + 1: the same, of active entries only
  std::vector<std::size_t> spike_start;     // samples + 1: of spikes only
  std::vector<float> spike_gradient;        // active entries: dLoss/ds, written by the layer above in the backward pass
  std::vector<std::uint32_t> spike_counts;  // width: spikes of each column in the batch

  void clear(std::size_t rows, int width);
  /// The samples of `later`, whose first row is `first_row` here, follow those that are here; there is room for their
  /// counts.
  void append(const TileTrace& later, std::size_t first_row);
  /// Of what the forward pass keeps.
  std::size_t bytes() const;
};

/// Which neurons the forward pass lists beside those that spike.
enum class Listing { active, spikes_only, everything };

class LayerState {
 public:
  LayerState(const LayerSpec& spec, int inputs, const LayerPlan& plan);

  const LayerSpec& spec() const { return *spec_; }
  int inputs() const { return inputs_; }
  int size() const { return spec_->size; }
  int width() const { return width_; }
  int tiles() const { return tiles_; }
  int stride() const { return tiles_ * width_; }
  int owner(int tile) const { return owners_[tile]; }
  /// Who works on which part of which tile.
  const std::vector<TileShare>& shares() const { return shares_; }
  /// Of the tiles that several workers share: how many there are, and which of them this one is, or -1.
  int shared_tiles() const { return shared_tiles_; }
  int number_among_shared(int tile) const { return shared_numbers_[tile]; }
  bool recurrent() const { return spec_->recurrent; }
  StepSchedule step_schedule() const { return step_schedule_; }
  std::size_t partial_budget_bytes() const { return partial_budget_bytes_; }

  std::size_t tile_floats() const { return static_cast<std::size_t>(inputs_) * width_; }
  /// Floats of a tile's block of a parameter.
  std::size_t block_floats(ParameterKind parameter) const { return rows_of(parameter) * width_; }
  float* weights(int tile) { return weights_.data() + tile * tile_floats(); }
  const float* weights(int tile) const { return weights_.data() + tile * tile_floats(); }
  /// Whether the list passes read bf16 copies, and the copy of a tile, (inputs, width / 2).
  bool half_rows() const { return half_rows_; }
  const kernels::Bf16Pair* half_weights(int tile) const {
    return half_rows_ ? half_weights_.data() + tile * tile_floats() / 2 : nullptr;
  }
  /// What reaches a tile from the row (sample, step) `first_row` of the layer's input on, with neurons at rest.
  kernels::TileInput input_of(int tile, const SpikeRows& input, std::size_t first_row) const {
    return {.weights = weights(tile),
            .bias = bias(tile),
            .offsets = input.offsets + first_row,
            .ids = input.ids,
            .half_weights = half_weights(tile),
            .spike_value = input.value};
  }
  /// The same of a sample, with what its neurons carry from the chunk before.
  kernels::TileInput input_of_sample(int tile, const SpikeRows& input, int sample, int steps) const {
    kernels::TileInput from = input_of(tile, input, static_cast<std::size_t>(sample) * steps);
    from.carried = carried.before(tile, sample);
    return from;
  }
  /// Makes the copy of `count` rows of the tile's weights from the input `first` on, once the weights have changed.
  void round_weights(int tile, int first, int count);
  /// (size, width): what a spike of any neuron of the layer adds to the tile one step later; null unless recurrent.
  float* recurrent_weights(int tile) {
    return recurrent() ? recurrent_weights_.data() + tile * block_floats(ParameterKind::recurrent_weight) : nullptr;
  }
  /// The tile's block of a parameter.
  float* values(ParameterKind parameter, int tile);
  float* bias(int tile) { return bias_.data() + tile * width_; }
  const float* bias(int tile) const { return bias_.data() + tile * width_; }
  float* bias_gradient(int tile) { return bias_gradient_.data() + tile * width_; }
  float* rate_gradient(int tile) { return rate_gradient_.data() + tile * width_; }
  /// Whether constants of the neurons are learned.
  bool learns_constants() const { return !spec_->learn.empty(); }
  /// What a sample adds to the gradients of a tile's neurons: dLoss/d(bias), (width), and where constants are learned
  /// dLoss/d(constant), (kNeuronConstants, width).
  std::size_t sample_sums() const {
    return static_cast<std::size_t>(width_) * (learns_constants() ? 1 + kNeuronConstants : 1);
  }
  /// Zeroes a tile's gradients of its neurons; adds a sample's sums to them, which is to be done in the order of the
  /// samples; and makes the gradients of the learned parameters from those of the constants.
  void start_gradients(int tile);
  void add_sample_sums(int tile, const float* sums);
  void finish_gradients(int tile);
  /// A learned parameter's gradient, (width).
  float* neuron_gradient(ParameterKind parameter, int tile) {
    return neuron_gradients_[static_cast<int>(parameter)].data() + tile * width_;
  }
  /// Brings the tile's learned parameters, once they have changed, back into their limits. The constants of the neurons
  /// follow when all tiles are through.
  void keep_limits(int tile);
  void make_constants();
  /// Gradients that outlive their tile's turn: with clipping, in several groups, and in dense mode. Allocated at first
  /// use. Null if the layer is not recurrent.
  float* kept_gradient(int tile);
  float* kept_recurrent_gradient(int tile);

  const kernels::SpikingKernels& kernels() const { return *kernels_; }
  /// Numbers that its neurons hand on from step to step; 1 where they do not spike.
  int states() const { return kernels_ ? kernels_->states : 1; }
  std::size_t state_floats() const { return static_cast<std::size_t>(states()) * width_; }
  kernels::TileConstants constants(int tile, Listing listing = Listing::active) const;
  /// Thresholds of the tile's neurons; `same_threshold` if all of the layer are equal.
  const float* thresholds(int tile) const { return column(NeuronConstant::threshold).data() + tile * width_; }
  bool same_threshold() const { return same_threshold_; }
  void set_window_low(double units_of_threshold);

  void import_parameters(const LayerParameters& parameters);
  LayerParameters export_parameters() const;

  /// Between the canonical order of a parameter (LayerParameters) and the tiles'.
  std::vector<float> to_canonical(ParameterKind parameter, std::span<const float* const> tiles) const;
  void from_canonical(ParameterKind parameter, std::span<const float> canonical, std::span<float* const> tiles) const;

  std::vector<TileTrace> traces;       // one per tile
  std::vector<TileTrace> part_traces;  // one per share: of a part of a tile that is not its first, until it is appended
  SpikeLists spikes;                   // of the batch, all tiles
  SpikeLists active;                   // likewise; only while the layer above is in its backward pass
  Outgoing outgoing;                   // what of the two reaches the layer above, where it is not all of it
  CarriedState carried;                // from one chunk of the batch to the next

  /// What the layer above receives, and where it computes dLoss/ds.
  SpikeRows sent_spikes() const;
  const SpikeLists& sent_active() const { return outgoing.changes() ? outgoing.active() : active; }

 private:
  /// Numbers per neuron of a parameter: what reaches it, or one.
  std::size_t rows_of(ParameterKind parameter) const;
  const AlignedBuffer<float>& column(NeuronConstant which) const { return columns_[static_cast<int>(which)]; }

  const LayerSpec* spec_;
  int inputs_;
  int width_;
  int tiles_;
  bool half_rows_;
  StepSchedule step_schedule_;
  std::size_t partial_budget_bytes_;
  std::vector<TileShare> shares_;
  std::vector<int> owners_;
  std::vector<int> shared_numbers_;
  int shared_tiles_ = 0;
  const kernels::SpikingKernels* kernels_;  // null for layers that do not spike
  bool same_threshold_ = true;
  LayerParameters neurons_;  // the constants of the neurons alone
  double window_low_;
  AlignedBuffer<float> weights_;                   // (tiles, inputs, width)
  AlignedBuffer<kernels::Bf16Pair> half_weights_;  // (tiles, inputs, width / 2) or empty
  AlignedBuffer<float> recurrent_weights_;         // (tiles, size, width) or empty
  AlignedBuffer<float> bias_;                      // (tiles, width), as the next ones
  AlignedBuffer<float> bias_gradient_;
  AlignedBuffer<float> rate_gradient_;              // dRegulariser/ds of each neuron, the same for every spike
  AlignedBuffer<float> kept_gradient_;              // (tiles, inputs, width) or empty
  AlignedBuffer<float> kept_recurrent_gradient_;    // (tiles, size, width) or empty
  AlignedBuffer<float> columns_[kNeuronConstants];  // (tiles, width) each
  AlignedBuffer<float> neuron_values_[std::size(kParameterKinds)];     // (tiles, width) of learned parameters
  AlignedBuffer<float> neuron_gradients_[std::size(kParameterKinds)];  // likewise
  AlignedBuffer<double> constant_gradients_;                           // (tiles, kNeuronConstants, width) or empty
  AlignedBuffer<float> plus_infinity_, minus_infinity_;                // width each
};

}  // namespace spikeloom
