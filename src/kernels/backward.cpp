// Backward passes of a tile: delta recursion, weight gradient from transposed events, input gradient at the active set.
#include "kernels/kernels.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

#include "network/models/leaky_integrator.inl.hpp"
#include "network/models/lif.inl.hpp"

/// First pass over a sample's lists: writes h (dLoss/ds + rate gradient) of the active entries into rows that are 0
/// elsewhere, and the spikes as bits. Vectors are read from the rows only in the second pass, a whole sample later:
/// read at once, each would wait for the single floats to leave the store buffer.
template <int kWidth, bool kThroughReset>
void scatter_entries(const TileConstants& c, const TraceIn& trace, const float* spike_gradient,
                     const float* rate_gradient, int steps, float* rows, std::ptrdiff_t stride,
                     std::uint64_t* spike_masks, float* jumps) {
  std::size_t entry = 0;
  for (int step = 0; step < steps; ++step) {
    float* row = rows + step * stride;
    std::fill_n(row, kWidth, 0.0f);
    float* jump_row = kThroughReset ? jumps + step * kWidth : nullptr;
    if constexpr (kThroughReset) std::fill_n(jump_row, kWidth, 0.0f);
    std::uint64_t spiked = 0;
    for (const std::size_t end = entry + trace.counts[step]; entry < end; ++entry) {
      const std::uint8_t code = trace.codes[entry];
      const int column = code & kColumnBits;
      spiked |= std::uint64_t{(code & kSpiked) != 0} << column;
      if (!(code & kActive)) continue;
      const float h = trace.derivatives[entry];
      row[column] = h * (*spike_gradient++ + rate_gradient[column]);
      if constexpr (kThroughReset) {
        const float membrane = trace.membranes[entry];
        // Lif::reset_jump of one neuron; a register for a single entry would cost more than it saves.
        jump_row[column] =
            h * __builtin_fmaf(c.spiked_slope[column] - c.decay[column], membrane, c.spiked_offset[column]);
      }
    }
    spike_masks[step] = spiked;
  }
}

template <int kWidth, bool kThroughReset>
void spiking(const TileConstants& c, const TraceIn& trace, const float* spike_gradient, const float* rate_gradient,
             int steps, float* rows, std::ptrdiff_t stride, float* bias_gradient, std::uint64_t* spike_masks,
             float* jumps) {
  constexpr int kVectors = kWidth / kLanes;
  scatter_entries<kWidth, kThroughReset>(c, trace, spike_gradient, rate_gradient, steps, rows, stride, spike_masks,
                                         jumps);
  Lanes delta[kVectors], bias[kVectors];
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) delta[i] = lanes(0.0f), bias[i] = load(bias_gradient + i * kLanes);
  for (int step = steps - 1; step >= 0; --step) {
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const int at = i * kLanes;
      const Lif::Constants<Lanes> constants{load(c.decay + at), load(c.gain + at), load(c.threshold + at),
                                            load(c.spiked_slope + at), load(c.spiked_offset + at)};
      float* row = rows + step * stride + at;
      const LaneMask spiked = mask_of(spike_masks[step] >> at);
      if constexpr (kThroughReset) {
        delta[i] = Lif::adjoint_through_reset(constants, spiked, load(jumps + step * kWidth + at), load(row), delta[i]);
      } else {
        delta[i] = Lif::adjoint(constants, spiked, load(row), delta[i]);
      }
      const Lanes scaled = constants.gain * delta[i];
      store(scaled, row);
      bias[i] = bias[i] + scaled;
    }
  }
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) store(bias[i], bias_gradient + i * kLanes);
}

template <int kWidth>
void membrane_only(const TileConstants& c, int steps, float* rows, std::ptrdiff_t stride, float* bias_gradient) {
  constexpr int kVectors = kWidth / kLanes;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const LeakyIntegrator::Constants<Lanes> constants{load(c.decay + i * kLanes), load(c.gain + i * kLanes)};
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

template <int kWidth>
void weights(const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first, std::uint32_t last,
             const float* rows, std::ptrdiff_t stride, float* gradient) {
  constexpr int kVectors = kWidth / kLanes;
  for (std::uint32_t id = first; id < last; ++id) {
    const std::uint32_t* event = event_rows + starts[id];
    const std::uint32_t* end = event_rows + starts[id + 1];
    if (event == end) continue;
    float* out = gradient + std::size_t{id} * kWidth;
    Lanes sum[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sum[i] = load(out + i * kLanes);
    for (; event != end; ++event) {
      const float* row = rows + static_cast<std::ptrdiff_t>(*event) * stride;
      SPIKELOOM_UNROLL
      for (int i = 0; i < kVectors; ++i) sum[i] = sum[i] + load(row + i * kLanes);
    }
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) store(sum[i], out + i * kLanes);
  }
}

/// Products of one row of delta with one row of weights, added into 16 virtual lanes (lane l: columns l, l + 16, ...),
/// then lanes l and l + 8, then l and l + 4: the first two levels of the reduction tree.
using Quad = hn::FixedTag<float, 4>;
template <int kWidth>
HWY_INLINE hn::Vec<Quad> four_lanes(const float* weights, const Lanes (&delta)[kWidth / kLanes]) {
  constexpr int kPerSixteen = 16 / kLanes;
  Lanes lane[kPerSixteen];
  SPIKELOOM_UNROLL
  for (int p = 0; p < kPerSixteen; ++p) {
    lane[p] = load(weights + p * kLanes) * delta[p];
    SPIKELOOM_UNROLL
    for (int block = 1; block < kWidth / 16; ++block) {
      lane[p] = mul_add(load(weights + block * 16 + p * kLanes), delta[block * kPerSixteen + p], lane[p]);
    }
  }
#if HWY_CAP_GE512
  const hn::FixedTag<float, 8> half;
  const auto eight = hn::Add(hn::LowerHalf(half, lane[0].v), hn::UpperHalf(half, lane[0].v));
  return hn::Add(hn::LowerHalf(Quad(), eight), hn::UpperHalf(Quad(), eight));
#elif HWY_CAP_GE256
  const auto eight = hn::Add(lane[0].v, lane[1].v);
  return hn::Add(hn::LowerHalf(Quad(), eight), hn::UpperHalf(Quad(), eight));
#else
  return hn::Add(hn::Add(lane[0].v, lane[2].v), hn::Add(lane[1].v, lane[3].v));
#endif
}

/// Last two levels of the tree, for four events at once: lanes (0, 2) and (1, 3), then both.
HWY_INLINE hn::Vec<Quad> sums_of_four(hn::Vec<Quad> a, hn::Vec<Quad> b, hn::Vec<Quad> c, hn::Vec<Quad> d) {
  const Quad q;
  const auto ab = hn::Add(hn::InterleaveLower(q, a, b), hn::InterleaveUpper(q, a, b));  // a0+a2 b0+b2 a1+a3 b1+b3
  const auto cd = hn::Add(hn::InterleaveLower(q, c, d), hn::InterleaveUpper(q, c, d));
  return hn::Add(hn::ConcatLowerLower(q, cd, ab), hn::ConcatUpperUpper(q, cd, ab));
}

template <int kWidth>
void inputs(const float* weights, const float* rows, std::ptrdiff_t stride, std::size_t row_count,
            const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  constexpr int kVectors = kWidth / kLanes;
  const Quad q;
  const std::uint32_t base = offsets[0];
  for (std::size_t r = 0; r < row_count; ++r) {
    std::uint32_t event = offsets[r];
    const std::uint32_t end = offsets[r + 1];
    if (event == end) continue;
    Lanes delta[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) delta[i] = load(rows + static_cast<std::ptrdiff_t>(r) * stride + i * kLanes);
    const auto weights_of = [&](std::uint32_t e) HWY_ATTR { return weights + std::size_t{ids[e]} * kWidth; };
    for (; event + 4 <= end; event += 4) {
      hn::StoreU(
          sums_of_four(four_lanes<kWidth>(weights_of(event), delta), four_lanes<kWidth>(weights_of(event + 1), delta),
                       four_lanes<kWidth>(weights_of(event + 2), delta),
                       four_lanes<kWidth>(weights_of(event + 3), delta)),
          q, out + (event - base));
    }
    if (event == end) continue;
    const std::uint32_t rest = end - event;  // 1 to 3; the tree is the same with the last one repeated
    const auto a = four_lanes<kWidth>(weights_of(event), delta);
    const auto b = rest > 1 ? four_lanes<kWidth>(weights_of(event + 1), delta) : a;
    const auto c = rest > 2 ? four_lanes<kWidth>(weights_of(event + 2), delta) : a;
    alignas(16) float sums[4];
    hn::Store(sums_of_four(a, b, c, a), q, sums);
    for (std::uint32_t i = 0; i < rest; ++i) out[event - base + i] = sums[i];
  }
}

void BackwardSpiking(int width, const TileConstants& c, const TraceIn& trace, const float* spike_gradient,
                     const float* rate_gradient, int steps, float* rows, std::ptrdiff_t stride, float* bias_gradient,
                     std::uint64_t* masks, float* jumps) {
  const auto run = [&](auto plain, auto through_reset) HWY_ATTR {
    (trace.membranes ? through_reset : plain)(c, trace, spike_gradient, rate_gradient, steps, rows, stride,
                                              bias_gradient, masks, jumps);
  };
  if (width == 64) return run(spiking<64, false>, spiking<64, true>);
  if (width == 32) return run(spiking<32, false>, spiking<32, true>);
  run(spiking<16, false>, spiking<16, true>);
}

void BackwardMembrane(int width, const TileConstants& c, int steps, float* rows, std::ptrdiff_t stride,
                      float* bias_gradient) {
  if (width == 64) return membrane_only<64>(c, steps, rows, stride, bias_gradient);
  if (width == 32) return membrane_only<32>(c, steps, rows, stride, bias_gradient);
  membrane_only<16>(c, steps, rows, stride, bias_gradient);
}

void WeightGradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                    std::uint32_t last, const float* rows, std::ptrdiff_t stride, float* gradient) {
  if (width == 64) return weights<64>(starts, event_rows, first, last, rows, stride, gradient);
  if (width == 32) return weights<32>(starts, event_rows, first, last, rows, stride, gradient);
  weights<16>(starts, event_rows, first, last, rows, stride, gradient);
}

void InputGradient(int width, const float* tile, const float* rows, std::ptrdiff_t stride, std::size_t row_count,
                   const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  if (width == 64) return inputs<64>(tile, rows, stride, row_count, offsets, ids, out);
  if (width == 32) return inputs<32>(tile, rows, stride, row_count, offsets, ids, out);
  inputs<16>(tile, rows, stride, row_count, offsets, ids, out);
}

void AddInOrder(const float* const* parts, std::size_t part_count, std::size_t count, float* sum) {
  std::size_t e = 0;
  for (; e + kLanes <= count; e += kLanes) {
    Lanes total = load_unaligned(parts[0] + e);
    for (std::size_t p = 1; p < part_count; ++p) total = total + load_unaligned(parts[p] + e);
    store_unaligned(total, sum + e);
  }
  for (; e < count; ++e) {
    float total = parts[0][e];
    for (std::size_t p = 1; p < part_count; ++p) total += parts[p][e];
    sum[e] = total;
  }
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom::kernels {

HWY_EXPORT(BackwardSpiking);
HWY_EXPORT(BackwardMembrane);
HWY_EXPORT(WeightGradient);
HWY_EXPORT(InputGradient);
HWY_EXPORT(AddInOrder);

void backward_spiking(int width, const TileConstants& constants, const TraceIn& trace, const float* spike_gradient,
                      const float* rate_gradient, int steps, float* rows, std::ptrdiff_t stride, float* bias_gradient,
                      std::uint64_t* spike_masks, float* jumps) {
  HWY_DYNAMIC_DISPATCH(BackwardSpiking)
  (width, constants, trace, spike_gradient, rate_gradient, steps, rows, stride, bias_gradient, spike_masks, jumps);
}

void backward_membrane(int width, const TileConstants& constants, int steps, float* rows, std::ptrdiff_t stride,
                       float* bias_gradient) {
  HWY_DYNAMIC_DISPATCH(BackwardMembrane)(width, constants, steps, rows, stride, bias_gradient);
}

void weight_gradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                     std::uint32_t last, const float* rows, std::ptrdiff_t stride, float* gradient) {
  HWY_DYNAMIC_DISPATCH(WeightGradient)(width, starts, event_rows, first, last, rows, stride, gradient);
}

void input_gradient(int width, const float* tile, const float* rows, std::ptrdiff_t stride, std::size_t row_count,
                    const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  HWY_DYNAMIC_DISPATCH(InputGradient)(width, tile, rows, stride, row_count, offsets, ids, out);
}

void add_in_order(const std::vector<const float*>& parts, std::size_t count, float* sum) {
  HWY_DYNAMIC_DISPATCH(AddInOrder)(parts.data(), parts.size(), count, sum);
}

}  // namespace spikeloom::kernels
#endif
