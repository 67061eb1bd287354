// Gradient accumulation: one update from the gradients of several batches.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "core/aligned_buffer.hpp"
#include "engine/engine.hpp"

namespace spikeloom {

/// The gradient of the mean loss over the samples of several batches. It takes the optimiser's place in the batches'
/// training steps, which then change no parameter, and lets the optimiser have the sum at the end.
class GradientSum final : public ParameterUpdate {
 public:
  /// Of the parameters of `engine`, which must outlive this.
  explicit GradientSum(Engine& engine);

  /// Before a training step (without clipping): `share` is the batch's part of the update's samples, for each batch's
  /// gradient is a mean over its own; `first` starts a new sum.
  void begin_batch(double share, bool first);
  /// Adds share * gradient; the parameters stay as they are. Called by several workers, each for blocks of its own.
  void apply(BlockId block, std::size_t first, float* values, const float* gradient, std::size_t count) override;

  /// Scales the sum to at most the global norm `gradient_clip` (0: not), summed in double, block by block in order, and
  /// hands it to `update`.
  void finish(ParameterUpdate& update, double gradient_clip);

 private:
  class HandOver;
  double squared_norm() const;

  Engine& engine_;
  std::map<BlockId, std::size_t> index_;
  std::vector<AlignedBuffer<float>> sums_;
  float share_ = 1.0F;
  bool first_ = true;
};

}  // namespace spikeloom
