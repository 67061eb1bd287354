// One optimiser step over a block of parameters: plain loops of +, -, *, / and sqrt, which are correctly rounded
// everywhere, so that the same bits come out on every machine. Formulas as torch.optim has them.
#pragma once

#include <cstddef>

namespace spikeloom {

/// What went wrong in a block, if anything.
enum class BlockFault { none, gradient, value };

/// Numbers of one step of Adam or AdamW, computed in double and rounded once.
struct AdamStep {
  float keep = 1.0F;           // AdamW: 1 - learning rate * weight decay, multiplies the value
  float coupled_decay = 0.0F;  // Adam: this times the value is added to the gradient
  float beta1 = 0.9F;
  float one_minus_beta1 = 0.1F;
  float beta2 = 0.999F;
  float one_minus_beta2 = 0.001F;
  float step_size = 1e-3F;    // learning rate / (1 - beta1^t)
  float inverse_root = 1.0F;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 1e-8F;
};

/// value, gradient, first, second: `count` floats each, not overlapping. m = beta1 m + (1 - beta1) g; v = beta2 v + (1
/// - beta2) g^2; value -= step_size m / (sqrt(v) inverse_root + epsilon). Moments too small to matter become 0:
/// subnormal numbers are slow (|m| < 1e-30, v < 1e-36).
BlockFault adam_step(const AdamStep& step, float* value, const float* gradient, float* first, float* second,
                     std::size_t count);

struct SgdStep {
  float coupled_decay = 0.0F;
  float momentum = 0.0F;
  float learning_rate = 1e-3F;
};

/// b = momentum b + (g + decay value); value -= learning rate b.
BlockFault sgd_step(const SgdStep& step, float* value, const float* gradient, float* velocity, std::size_t count);

}  // namespace spikeloom
