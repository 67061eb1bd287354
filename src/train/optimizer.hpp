// The optimiser: what happens to every block of parameters once its gradient is complete, and the state that this
// needs.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <spikeloom/configuration.hpp>

#include "core/aligned_buffer.hpp"
#include "engine/engine.hpp"
#include "kernels/optimizer_step.hpp"

namespace spikeloom {

class Optimizer final : public ParameterUpdate {
 public:
  struct BlockShape {
    BlockId id;
    std::size_t size = 0;
  };

  /// Throws UserError for an epsilon that is not positive: a parameter without gradient would become 0/0.
  Optimizer(const OptimizerSpec& spec, std::vector<BlockShape> blocks);
  Optimizer(const OptimizerSpec& spec, const Engine& engine);

  /// Must precede each train_step: counts the step and fixes its numbers.
  void begin_step(double learning_rate);
  /// Decoupled (adamw) or coupled (adam, sgd) weight decay goes to weights and recurrent weights only. Several workers
  /// may call it at the same time for different parts.
  void apply(BlockId block, std::size_t first, float* values, const float* gradient, std::size_t count) override;
  /// Throws NumericalError naming step, layer and parameter if the last step met or made NaN or infinity.
  void check(const NetworkSpec& network) const;

  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

  /// Names of the moments: {"m", "v"} for adam and adamw, {"momentum"} for sgd.
  const std::vector<std::string>& moment_names() const { return moment_names_; }
  /// The blocks' state of one moment for a parameter of a layer, in the order that Engine::gather_canonical wants.
  /// Empty without such blocks.
  std::vector<const float*> moment_blocks(std::size_t moment, int layer, ParameterKind parameter) const;
  std::vector<float*> moment_blocks(std::size_t moment, int layer, ParameterKind parameter);

 private:
  struct BlockState {
    BlockShape shape;
    std::vector<float*> moments;  // into moments_
    BlockFault fault = BlockFault::none;
  };

  BlockState& state_of(BlockId block);

  OptimizerSpec spec_;
  std::vector<std::string> moment_names_;
  AlignedBuffer<float> moments_;  // of all blocks: one piece, so that it can have huge pages
  std::vector<BlockState> states_;
  std::vector<std::vector<std::size_t>> index_[std::size(kParameterKinds)];  // [parameter][layer][tile] -> states_
  std::int64_t steps_ = 0;
  AdamStep adam_;
  SgdStep sgd_;
  float decay_of_weights_ = 0.0F;
};

}  // namespace spikeloom
