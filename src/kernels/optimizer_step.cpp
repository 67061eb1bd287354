// Optimiser steps as plain loops, compiled once per instruction set and vectorised by the compiler: they are bound by
// memory, and nothing here needs more than correctly rounded +, -, *, / and sqrt, so the bits are the same everywhere.
#include "kernels/optimizer_step.hpp"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer_step.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace spikeloom::HWY_NAMESPACE {
namespace {

constexpr std::int32_t kInfinity = 0x7f800000;

/// The bits of |x|: as integers they order like the numbers, with infinity and NaN at the top. An integer maximum
/// vectorises; a float one does not.
inline std::int32_t magnitude_bits(float x) { return __builtin_bit_cast(std::int32_t, x) & 0x7fffffff; }
inline std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

inline float flushed(float x, float smallest) { return __builtin_fabsf(x) < smallest ? 0.0F : x; }

BlockFault fault(std::int32_t largest_gradient, std::int32_t largest_value) {
  if (largest_gradient >= kInfinity) return BlockFault::gradient;
  return largest_value >= kInfinity ? BlockFault::value : BlockFault::none;
}

BlockFault AdamStepOf(const AdamStep& step, float* __restrict value, const float* __restrict gradient,
                      float* __restrict first, float* __restrict second, std::size_t count) {
  const AdamStep s = step;
  std::int32_t largest_gradient = 0;
  std::int32_t largest_value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i] + s.coupled_decay * value[i];
    const float squared = flushed(g, 1e-17F);  // smaller ones would have a subnormal square
    const float m = flushed(s.beta1 * first[i] + s.one_minus_beta1 * g, 1e-30F);
    const float v = flushed(s.beta2 * second[i] + s.one_minus_beta2 * squared * squared, 1e-36F);
    const float w = value[i] * s.keep - s.step_size * m / (__builtin_sqrtf(v) * s.inverse_root + s.epsilon);
    first[i] = m;
    second[i] = v;
    value[i] = w;
    largest_gradient = larger(largest_gradient, magnitude_bits(gradient[i]));
    largest_value = larger(largest_value, larger(magnitude_bits(w), magnitude_bits(v)));
  }
  return fault(largest_gradient, largest_value);
}

BlockFault SgdStepOf(const SgdStep& step, float* __restrict value, const float* __restrict gradient,
                     float* __restrict velocity, std::size_t count) {
  const SgdStep s = step;
  std::int32_t largest_gradient = 0;
  std::int32_t largest_value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float b = flushed(s.momentum * velocity[i] + (gradient[i] + s.coupled_decay * value[i]), 1e-30F);
    const float w = value[i] - s.learning_rate * b;
    velocity[i] = b;
    value[i] = w;
    largest_gradient = larger(largest_gradient, magnitude_bits(gradient[i]));
    largest_value = larger(largest_value, magnitude_bits(w));
  }
  return fault(largest_gradient, largest_value);
}

}  // namespace
}  // namespace spikeloom::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom {

HWY_EXPORT(AdamStepOf);
HWY_EXPORT(SgdStepOf);

BlockFault adam_step(const AdamStep& step, float* value, const float* gradient, float* first, float* second,
                     std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(AdamStepOf)(step, value, gradient, first, second, count);
}

BlockFault sgd_step(const SgdStep& step, float* value, const float* gradient, float* velocity, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(SgdStepOf)(step, value, gradient, velocity, count);
}

}  // namespace spikeloom
#endif
