// A tile of a hidden layer with random weights and input spikes, as the kernels see one.
#pragma once

#include <memory>
#include <vector>

#include "core/worker_team.hpp"
#include "engine/passes.hpp"

namespace spikeloom::measure {

inline constexpr int kSteps = 100;

/// Independent spikes, `per_row` in a row on average, of rows (samples, kSteps).
SpikeLists random_spikes(int samples, int steps, int neurons, double per_row, std::uint64_t number);

/// A LIF layer of `tiles` tiles on `inputs` neurons with everything that the engine's passes want: one worker.
class TileCase {
 public:
  /// Weights are scaled so that a neuron's membrane would have about this standard deviation if it were not reset, the
  /// threshold being 1: 0.01 keeps everyone quiet, 0.4 brings 1 % of the neurons into the surrogate's window.
  TileCase(int width, int tiles, int inputs, int samples, double events_per_step, double deviation, bool half = false);

  void forward_tile(int tile = 0);
  /// Tile by tile; then the layer's lists hold the batch.
  void forward_all();
  void list_active();
  /// The tile's delta recursion over all samples, in ranges of rows that are kept as in the engine.
  void delta_tile();

  double rows() const { return static_cast<double>(context_.rows()); }
  double events() const { return static_cast<double>(input_.ids.size()); }
  /// Entries of all tiles in the last forward pass.
  double entries() const;
  std::size_t active() const;

  LayerState& layer() { return layer_; }
  const PassContext& context() const { return context_; }
  SpikeRows input() const { return input_.view(layer_.inputs()); }
  WorkerScratch& scratch() { return scratch_.front(); }
  const float* delta() const { return delta_.data(); }                        // (rows, width), random
  const kernels::Bf16Pair* half_delta() const { return half_delta_.data(); }  // the same in bf16, if asked for
  WorkerTeam& team() { return team_; }

 private:
  LayerSpec spec_;
  Plan plan_;
  WorkerTeam team_{1};
  std::vector<WorkerScratch> scratch_{1};
  SharedScratch shared_;
  LayerState layer_;
  SpikeLists input_;
  AlignedBuffer<float> delta_;
  AlignedBuffer<kernels::Bf16Pair> half_delta_;
  PassContext context_;
};

}  // namespace spikeloom::measure
