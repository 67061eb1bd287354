// Forward passes of a tile: the loop over time is inside, the carried membranes stay in registers, and each input spike
// adds one row of weights.
#include "kernels/kernels.hpp"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

#include "network/models/leaky_integrator.inl.hpp"
#include "network/models/lif.inl.hpp"
#include "network/surrogates.inl.hpp"

#include "kernels/rows.inl.hpp"

/// I[t] without the gain: bias plus the rows of the step's spikes in ascending id, or bias plus a row made by a matrix
/// product.
template <int kVectors, class Rows>
HWY_INLINE void input_of_step(const TileInput& input, const typename Rows::Element* weights, int step,
                              Lanes (&sum)[kVectors]) {
  const bool scaled = input.spike_value != 1.0f;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) sum[i] = scaled ? lanes(0.0f) : load(input.bias + i * kLanes);
  if (input.currents) {
    const float* row = input.currents + step * input.current_stride;
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sum[i] = sum[i] + load_unaligned(row + i * kLanes);
    return;
  }
  const std::uint32_t* end = input.ids + input.offsets[step + 1];
  for (const std::uint32_t* id = input.ids + input.offsets[step]; id != end; ++id)
    Rows::add(weights + std::size_t{*id} * (kVectors * kLanes / Rows::kColumnsPerElement), sum);
  if (!scaled) return;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) sum[i] = mul_add(sum[i], lanes(input.spike_value), load(input.bias + i * kLanes));
}

/// Columns of a tile, as bits.
struct Columns {
  std::uint64_t spiked = 0;
  std::uint64_t active = 0;
};

/// One step of a tile of LIF neurons: `carry` goes from step to step.
template <int kVectors>
HWY_INLINE Columns lif_step(const TileConstants& c, const Lanes (&sum)[kVectors], Lanes (&carry)[kVectors],
                            float* membranes) {
  Columns columns;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * kLanes;
    const Lif::Constants<Lanes> constants{load(c.decay + at), load(c.gain + at), load(c.threshold + at),
                                          load(c.spiked_slope + at), load(c.spiked_offset + at)};
    const Lanes membrane = Lif::integrate(constants, carry[i], sum[i]);
    const LaneMask spiked = Lif::fires(constants, membrane);
    const LaneMask active = (membrane > load(c.window_low + at)) & (membrane <= load(c.window_high + at));
    carry[i] = Lif::carry(constants, membrane, spiked);
    store(membrane, membranes + at);
    columns.spiked |= bits_of(spiked) << at;
    columns.active |= bits_of(active) << at;
  }
  return columns;
}

/// Lists the columns that spiked or are active, ascending; returns how many.
HWY_INLINE std::size_t list_columns(Columns columns, const float* membranes, std::uint8_t* codes,
                                    float* listed_membranes) {
  std::size_t entries = 0;
  for (std::uint64_t listed = columns.spiked | columns.active; listed != 0; listed &= listed - 1, ++entries) {
    const int column = std::countr_zero(listed);
    codes[entries] =
        static_cast<std::uint8_t>(column | (columns.spiked >> column & 1) << 6 | (columns.active >> column & 1) << 7);
    listed_membranes[entries] = membranes[column];
  }
  return entries;
}

template <int kWidth, class Rows>
std::size_t spiking(const TileInput& input, const typename Rows::Element* weights, const TileConstants& c, int steps,
                    const TraceOut& out) {
  constexpr int kVectors = kWidth / kLanes;
  Lanes carry[kVectors];
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) carry[i] = lanes(0.0f);
  alignas(64) float membranes[kWidth];
  std::size_t entries = 0;
  for (int step = 0; step < steps; ++step) {
    Lanes sum[kVectors];
    input_of_step<kVectors, Rows>(input, weights, step, sum);
    const Columns columns = lif_step(c, sum, carry, membranes);
    const std::size_t listed = list_columns(columns, membranes, out.codes + entries, out.membranes + entries);
    out.counts[step] = static_cast<std::uint8_t>(listed);
    entries += listed;
  }
  return entries;
}

template <int kWidth>
std::size_t step_of_samples(const StepInput& input, const TileConstants& c, int samples, float* carry,
                            const StepOut& out) {
  constexpr int kVectors = kWidth / kLanes;
  alignas(64) float membranes[kWidth];
  std::size_t entries = 0;
  for (int sample = 0; sample < samples; ++sample) {
    const float* current = input.currents + sample * input.current_stride;
    Lanes sum[kVectors], state[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      sum[i] = load(input.bias + i * kLanes) + load(current + i * kLanes);
      state[i] = load(carry + sample * kWidth + i * kLanes);
    }
    const std::uint32_t* end = input.ids + input.offsets[sample + 1];
    for (const std::uint32_t* id = input.ids + input.offsets[sample]; id != end; ++id)
      FullRows::add(input.recurrent_weights + std::size_t{*id} * kWidth, sum);
    const Columns columns = lif_step(c, sum, state, membranes);
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) store(state[i], carry + sample * kWidth + i * kLanes);
    const std::size_t listed = list_columns(columns, membranes, out.codes + entries, out.membranes + entries);
    out.counts[sample * out.count_stride] = static_cast<std::uint8_t>(listed);
    out.spiked[sample] = columns.spiked;
    entries += listed;
  }
  return entries;
}

template <int kWidth>
void membrane_only(const TileInput& input, const TileConstants& c, int steps, float* membrane, std::ptrdiff_t stride) {
  constexpr int kVectors = kWidth / kLanes;
  Lanes carry[kVectors];
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) carry[i] = lanes(0.0f);
  for (int step = 0; step < steps; ++step) {
    Lanes sum[kVectors];
    input_of_step<kVectors, FullRows>(input, input.weights, step, sum);
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const LeakyIntegrator::Constants<Lanes> constants{load(c.decay + i * kLanes), load(c.gain + i * kLanes)};
      const Lanes u = LeakyIntegrator::integrate(constants, carry[i], sum[i]);
      carry[i] = LeakyIntegrator::carry(constants, u);
      store_unaligned(u, membrane + step * stride + i * kLanes);
    }
  }
}

template <class Surrogate>
void derivatives_of(float slope, float amplitude, float threshold, const float* membranes, std::size_t count,
                    float* derivatives) {
  const SurrogateConstants<Lanes> constants{lanes(slope), lanes(amplitude), lanes(1.0f)};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Lanes x = load_unaligned(membranes + i) - lanes(threshold);
    store_unaligned(Surrogate::template derivative<Lanes>(constants, x), derivatives + i);
  }
  if (i == count) return;
  alignas(64) float rest[kLanes] = {};
  for (std::size_t j = i; j < count; ++j) rest[j - i] = membranes[j];
  store(Surrogate::template derivative<Lanes>(constants, load(rest) - lanes(threshold)), rest);
  for (std::size_t j = i; j < count; ++j) derivatives[j] = rest[j - i];
}

template <class Rows>
std::size_t spiking_of_width(int width, const TileInput& input, const typename Rows::Element* weights,
                             const TileConstants& constants, int steps, const TraceOut& out) {
  if (width == 64) return spiking<64, Rows>(input, weights, constants, steps, out);
  return spiking<32, Rows>(input, weights, constants, steps, out);
}

std::size_t ForwardSpiking(int width, const TileInput& input, const TileConstants& constants, int steps,
                           const TraceOut& out) {
  if (width == 16) return spiking<16, FullRows>(input, input.weights, constants, steps, out);
  if (!input.half_weights) return spiking_of_width<FullRows>(width, input, input.weights, constants, steps, out);
#if HWY_TARGET <= HWY_AVX3
  if (adds_by_bf16_dot()) return spiking_of_width<DottedRows>(width, input, input.half_weights, constants, steps, out);
#endif
  return spiking_of_width<ShiftedRows>(width, input, input.half_weights, constants, steps, out);
}

std::size_t ForwardStep(int width, const StepInput& input, const TileConstants& constants, int samples, float* carry,
                        const StepOut& out) {
  if (width == 64) return step_of_samples<64>(input, constants, samples, carry, out);
  if (width == 32) return step_of_samples<32>(input, constants, samples, carry, out);
  return step_of_samples<16>(input, constants, samples, carry, out);
}

void ForwardMembrane(int width, const TileInput& input, const TileConstants& constants, int steps, float* membrane,
                     std::ptrdiff_t stride) {
  if (width == 64) return membrane_only<64>(input, constants, steps, membrane, stride);
  if (width == 32) return membrane_only<32>(input, constants, steps, membrane, stride);
  return membrane_only<16>(input, constants, steps, membrane, stride);
}

void SurrogateDerivatives(SurrogateKind kind, float slope, float amplitude, float threshold, const float* membranes,
                          std::size_t count, float* derivatives) {
  switch (kind) {
    case SurrogateKind::superspike:
      return derivatives_of<SuperSpike>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::triangle:
      return derivatives_of<Triangle>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::box:
      return derivatives_of<Box>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::quadratic:
      return derivatives_of<Quadratic>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::arctan:
      return derivatives_of<Arctan>(slope, amplitude, threshold, membranes, count, derivatives);
  }
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "network/neuron_constants.hpp"

namespace spikeloom::kernels {

HWY_EXPORT(ForwardSpiking);
HWY_EXPORT(ForwardStep);
HWY_EXPORT(ForwardMembrane);
HWY_EXPORT(SurrogateDerivatives);

std::size_t forward_spiking(int width, const TileInput& input, const TileConstants& constants, int steps,
                            const TraceOut& out) {
  return HWY_DYNAMIC_DISPATCH(ForwardSpiking)(width, input, constants, steps, out);
}

std::size_t forward_step(int width, const StepInput& input, const TileConstants& constants, int samples, float* carry,
                         const StepOut& out) {
  return HWY_DYNAMIC_DISPATCH(ForwardStep)(width, input, constants, samples, carry, out);
}

void forward_membrane(int width, const TileInput& input, const TileConstants& constants, int steps, float* membrane,
                      std::ptrdiff_t stride) {
  HWY_DYNAMIC_DISPATCH(ForwardMembrane)(width, input, constants, steps, membrane, stride);
}

void surrogate_derivatives(const SurrogateSpec& surrogate, float threshold, const float* membranes, std::size_t count,
                           float* derivatives) {
  const SurrogateNumbers numbers = surrogate_numbers(surrogate);
  HWY_DYNAMIC_DISPATCH(SurrogateDerivatives)
  (surrogate.kind, static_cast<float>(numbers.slope), static_cast<float>(numbers.amplitude), threshold, membranes,
   count, derivatives);
}

}  // namespace spikeloom::kernels
#endif
