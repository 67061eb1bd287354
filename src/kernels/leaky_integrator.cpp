// Leaky integrators of a tile, forward and backward: dense in time, for they do not spike.
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/leaky_integrator.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

#include "network/models/leaky_integrator.inl.hpp"

#include "kernels/rows.inl.hpp"
#include "kernels/tile_input.inl.hpp"

template <int kWidth>
void forward(const TileInput& input, const TileConstants& c, int steps, float* membrane, std::ptrdiff_t stride,
             float* handed_on) {
  constexpr int kVectors = kWidth / kLanes;
  Lanes carry[kVectors];
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) carry[i] = input.carried ? load(input.carried + i * kLanes) : lanes(0.0f);
  for (int step = 0; step < steps; ++step) {
    Lanes sum[kVectors];
    input_of_step<kVectors, FullRows>(input, input.weights, step, sum);
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const LeakyIntegrator::Constants<Lanes> constants{load(c[NeuronConstant::decay] + i * kLanes),
                                                        load(c[NeuronConstant::gain] + i * kLanes)};
      const Lanes u = LeakyIntegrator::integrate(constants, carry[i], sum[i]);
      carry[i] = LeakyIntegrator::carry(constants, u);
      store_unaligned(u, membrane + step * stride + i * kLanes);
    }
  }
  if (!handed_on) return;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) store(carry[i], handed_on + i * kLanes);
}

template <int kWidth>
void backward(const TileConstants& c, int steps, float* rows, std::ptrdiff_t stride, float* bias_gradient) {
  constexpr int kVectors = kWidth / kLanes;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const LeakyIntegrator::Constants<Lanes> constants{load(c[NeuronConstant::decay] + i * kLanes),
                                                      load(c[NeuronConstant::gain] + i * kLanes)};
    Lanes delta = lanes(0.0f), bias = load(bias_gradient + i * kLanes);
    for (int step = steps - 1; step >= 0; --step) {
      float* row = rows + step * stride + i * kLanes;
      delta = LeakyIntegrator::adjoint(constants, load(row), delta);
      const Lanes scaled = constants.gain * delta;
      store(scaled, row);
      bias = bias + scaled;
    }
    store(bias, bias_gradient + i * kLanes);
  }
}

void ForwardMembrane(int width, const TileInput& input, const TileConstants& constants, int steps, float* membrane,
                     std::ptrdiff_t stride, float* carry) {
  if (width == 64) return forward<64>(input, constants, steps, membrane, stride, carry);
  if (width == 32) return forward<32>(input, constants, steps, membrane, stride, carry);
  return forward<16>(input, constants, steps, membrane, stride, carry);
}

void BackwardMembrane(int width, const TileConstants& c, int steps, float* rows, std::ptrdiff_t stride,
                      float* bias_gradient) {
  if (width == 64) return backward<64>(c, steps, rows, stride, bias_gradient);
  if (width == 32) return backward<32>(c, steps, rows, stride, bias_gradient);
  backward<16>(c, steps, rows, stride, bias_gradient);
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom::kernels {

HWY_EXPORT(ForwardMembrane);
HWY_EXPORT(BackwardMembrane);

void forward_membrane(int width, const TileInput& input, const TileConstants& constants, int steps, float* membrane,
                      std::ptrdiff_t stride, float* carry) {
  HWY_DYNAMIC_DISPATCH(ForwardMembrane)(width, input, constants, steps, membrane, stride, carry);
}

void backward_membrane(int width, const TileConstants& constants, int steps, float* rows, std::ptrdiff_t stride,
                       float* bias_gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardMembrane)(width, constants, steps, rows, stride, bias_gradient);
}

}  // namespace spikeloom::kernels
#endif
