#include "train/optimizer.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include <spikeloom/error.hpp>

#include "core/elementary.hpp"

namespace spikeloom {
namespace {

constexpr std::size_t kFloatsPerLine = kCacheLine / sizeof(float);
constexpr std::size_t kNoBlock = std::numeric_limits<std::size_t>::max();

std::vector<Optimizer::BlockShape> shapes_of(const Engine& engine) {
  std::vector<Optimizer::BlockShape> shapes;
  for (const BlockId id : engine.blocks()) shapes.push_back({id, engine.block_size(id)});
  return shapes;
}

}  // namespace

Optimizer::Optimizer(const OptimizerSpec& spec, const Engine& engine) : Optimizer(spec, shapes_of(engine)) {}

Optimizer::Optimizer(const OptimizerSpec& spec, std::vector<BlockShape> blocks) : spec_(spec) {
  const bool sgd = spec.kind == OptimizerKind::sgd;
  if (!sgd && !(static_cast<float>(spec.epsilon) > 0.0F)) {
    throw UserError(fmt::format("optimizer.epsilon: {} is out of range; allowed: 1e-30 to 1", spec.epsilon));
  }
  moment_names_ = sgd ? std::vector<std::string>{"momentum"} : std::vector<std::string>{"m", "v"};
  const auto padded = [](std::size_t size) { return (size + kFloatsPerLine - 1) / kFloatsPerLine * kFloatsPerLine; };
  std::size_t floats = 0;
  for (const BlockShape& shape : blocks) floats += padded(shape.size) * moment_names_.size();
  moments_ = AlignedBuffer<float>(floats);
  float* next = moments_.data();
  for (const BlockShape& shape : blocks) {
    auto& layers = index_[static_cast<std::size_t>(shape.id.parameter)];
    if (layers.size() <= static_cast<std::size_t>(shape.id.layer)) layers.resize(shape.id.layer + 1);
    auto& tiles = layers[shape.id.layer];
    if (tiles.size() <= static_cast<std::size_t>(shape.id.tile)) tiles.resize(shape.id.tile + 1, kNoBlock);
    tiles[shape.id.tile] = states_.size();
    BlockState& state = states_.emplace_back();
    state.shape = shape;
    for (std::size_t moment = 0; moment < moment_names_.size(); ++moment) {
      state.moments.push_back(next);
      next += padded(shape.size);
    }
  }
}

Optimizer::BlockState& Optimizer::state_of(BlockId block) {
  return states_[index_[static_cast<std::size_t>(block.parameter)].at(block.layer).at(block.tile)];
}

void Optimizer::begin_step(double learning_rate) {
  ++steps_;
  for (BlockState& state : states_) state.fault = BlockFault::none;
  const auto t = static_cast<std::uint64_t>(steps_);
  adam_.beta1 = static_cast<float>(spec_.beta1);
  adam_.one_minus_beta1 = static_cast<float>(1.0 - spec_.beta1);
  adam_.beta2 = static_cast<float>(spec_.beta2);
  adam_.one_minus_beta2 = static_cast<float>(1.0 - spec_.beta2);
  adam_.step_size = static_cast<float>(learning_rate / (1.0 - integer_power(spec_.beta1, t)));
  adam_.inverse_root = static_cast<float>(1.0 / std::sqrt(1.0 - integer_power(spec_.beta2, t)));
  adam_.epsilon = static_cast<float>(spec_.epsilon);
  sgd_.learning_rate = static_cast<float>(learning_rate);
  sgd_.momentum = static_cast<float>(spec_.momentum);
  decay_of_weights_ = static_cast<float>(spec_.kind == OptimizerKind::adamw ? 1.0 - learning_rate * spec_.weight_decay
                                                                            : spec_.weight_decay);
}

void Optimizer::apply(BlockId block, std::size_t first, float* values, const float* gradient, std::size_t count) {
  BlockState& state = state_of(block);
  if (first + count > state.shape.size) throw InternalError("a block changed its size");
  const bool decays = block.parameter != ParameterKind::bias;
  BlockFault fault;
  if (spec_.kind == OptimizerKind::sgd) {
    SgdStep step = sgd_;
    step.coupled_decay = decays ? decay_of_weights_ : 0.0F;
    fault = sgd_step(step, values, gradient, state.moments[0] + first, count);
  } else {
    AdamStep step = adam_;
    if (decays) (spec_.kind == OptimizerKind::adamw ? step.keep : step.coupled_decay) = decay_of_weights_;
    fault = adam_step(step, values, gradient, state.moments[0] + first, state.moments[1] + first, count);
  }
  if (fault == BlockFault::none) return;
  // Of several faults the lowest stays, whoever comes first.
  std::atomic_ref<BlockFault> worst(state.fault);
  BlockFault known = worst.load(std::memory_order_relaxed);
  while ((known == BlockFault::none || fault < known) &&
         !worst.compare_exchange_weak(known, fault, std::memory_order_relaxed)) {
  }
}

void Optimizer::check(const NetworkSpec& network) const {
  for (const BlockState& state : states_) {
    if (state.fault == BlockFault::none) continue;
    const std::string parameter =
        fmt::format("{}.{}", network.layers[state.shape.id.layer].name, name_of(state.shape.id.parameter));
    if (state.fault == BlockFault::gradient) {
      throw NumericalError(fmt::format("training step {}: the gradient of {} is NaN or infinite", steps_, parameter));
    }
    throw NumericalError(
        fmt::format("training step {}: {} became NaN or infinite; a smaller optimizer.learning_rate or "
                    "optimizer.gradient_clip may help",
                    steps_, parameter));
  }
}

std::vector<const float*> Optimizer::moment_blocks(std::size_t moment, int layer, ParameterKind parameter) const {
  std::vector<const float*> blocks;
  const auto& layers = index_[static_cast<std::size_t>(parameter)];
  if (layers.size() <= static_cast<std::size_t>(layer)) return blocks;
  for (const std::size_t state : layers[layer]) blocks.push_back(states_[state].moments[moment]);
  return blocks;
}

std::vector<float*> Optimizer::moment_blocks(std::size_t moment, int layer, ParameterKind parameter) {
  std::vector<float*> blocks;
  for (const float* block : std::as_const(*this).moment_blocks(moment, layer, parameter))
    blocks.push_back(const_cast<float*>(block));
  return blocks;
}

}  // namespace spikeloom
