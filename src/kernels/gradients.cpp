// Gradients of a tile from its deltas: of its weights, from transposed events, and of its inputs, at their active set.
#include "kernels/kernels.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gradients.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/rows.inl.hpp"

template <int kWidth, class Rows>
void weights(const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first, std::uint32_t last,
             const typename Rows::Element* rows, std::ptrdiff_t stride, Gradient state, float* gradient) {
  constexpr int kVectors = kWidth / kLanes;
  for (std::uint32_t id = first; id < last; ++id) {
    const std::uint32_t* event = event_rows + starts[id];
    const std::uint32_t* end = event_rows + starts[id + 1];
    if (event == end && state == Gradient::add) continue;
    float* out = gradient + std::size_t{id} * kWidth;
    Lanes sum[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sum[i] = state == Gradient::add ? load(out + i * kLanes) : lanes(0.0f);
    for (; event != end; ++event) Rows::add(rows + static_cast<std::ptrdiff_t>(*event) * stride, sum);
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) store(sum[i], out + i * kLanes);
  }
}

using Quad = hn::FixedTag<float, 4>;

/// The 16 virtual lanes of four events reduced by one tree each: lanes l and l + 8, l and l + 4, l and l + 2, l and
/// l + 1. Registers are shared between the events as soon as one no longer fills them.
HWY_INLINE hn::Vec<Quad> sums_of_four(const Lanes (&lane)[4][kSixteen]) {
  const Quad q;
#if HWY_CAP_GE512
  const auto halves = [](Lanes a, Lanes b) HWY_ATTR {
    return hn::Add(hn::ConcatLowerLower(Floats(), b.v, a.v), hn::ConcatUpperUpper(Floats(), b.v, a.v));
  };
  const __m512 ab = halves(lane[0][0], lane[1][0]).raw, cd = halves(lane[2][0], lane[3][0]).raw;
  const __m512 fours = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
  const __m512 twos = _mm512_add_ps(fours, _mm512_permute_ps(fours, 0x4E));
  const __m512 ones = _mm512_add_ps(twos, _mm512_permute_ps(twos, 0xB1));
  const __m512i first_of_each = _mm512_castsi128_si512(_mm_setr_epi32(0, 4, 8, 12));
  return hn::LowerHalf(
      q, hn::LowerHalf(hn::FixedTag<float, 8>(), FloatVector{_mm512_permutexvar_ps(first_of_each, ones)}));
#else
#if HWY_CAP_GE256
  const auto four = [&](const Lanes(&a)[kSixteen]) HWY_ATTR {
    const auto eight = hn::Add(a[0].v, a[1].v);
    return hn::Add(hn::LowerHalf(q, eight), hn::UpperHalf(q, eight));
  };
#else
  const auto four = [&](const Lanes(&a)[kSixteen])
                        HWY_ATTR { return hn::Add(hn::Add(a[0].v, a[2].v), hn::Add(a[1].v, a[3].v)); };
#endif
  const auto twos = [&](hn::Vec<Quad> a, hn::Vec<Quad> b) HWY_ATTR {  // a0+a2 b0+b2 a1+a3 b1+b3
    return hn::Add(hn::InterleaveLower(q, a, b), hn::InterleaveUpper(q, a, b));
  };
  const auto ab = twos(four(lane[0]), four(lane[1])), cd = twos(four(lane[2]), four(lane[3]));
  return hn::Add(hn::ConcatLowerLower(q, cd, ab), hn::ConcatUpperUpper(q, cd, ab));
#endif
}

template <int kWidth, class Rows>
void inputs(const typename Rows::Element* weights, const typename Rows::Element* rows, std::ptrdiff_t stride,
            std::size_t row_count, const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  constexpr int kElements = kWidth / Rows::kColumnsPerElement;
  constexpr int kRegisters = kElements / kLanes;
  const Quad q;
  const std::uint32_t base = offsets[0];
  for (std::size_t r = 0; r < row_count; ++r) {
    std::uint32_t event = offsets[r];
    const std::uint32_t end = offsets[r + 1];
    if (event == end) continue;
    typename Rows::Register delta[kRegisters];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kRegisters; ++i)
      delta[i] = Rows::load_register(rows + static_cast<std::ptrdiff_t>(r) * stride + i * kLanes);
    const auto sums_of = [&](std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) HWY_ATTR {
      Lanes lane[4][kSixteen];
      Rows::multiply(weights + std::size_t{ids[a]} * kElements, delta, lane[0]);
      Rows::multiply(weights + std::size_t{ids[b]} * kElements, delta, lane[1]);
      Rows::multiply(weights + std::size_t{ids[c]} * kElements, delta, lane[2]);
      Rows::multiply(weights + std::size_t{ids[d]} * kElements, delta, lane[3]);
      return sums_of_four(lane);
    };
    for (; event + 4 <= end; event += 4)
      hn::StoreU(sums_of(event, event + 1, event + 2, event + 3), q, out + (event - base));
    if (event == end) continue;
    const std::uint32_t last = end - 1;  // stands in for the events that are missing
    alignas(16) float sums[4];
    hn::Store(sums_of(event, std::min(event + 1, last), std::min(event + 2, last), last), q, sums);
    for (std::uint32_t i = 0; event + i < end; ++i) out[event - base + i] = sums[i];
  }
}

void WeightGradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                    std::uint32_t last, const float* rows, std::ptrdiff_t stride, Gradient state, float* gradient) {
  if (width == 64) return weights<64, FullRows>(starts, event_rows, first, last, rows, stride, state, gradient);
  if (width == 32) return weights<32, FullRows>(starts, event_rows, first, last, rows, stride, state, gradient);
  weights<16, FullRows>(starts, event_rows, first, last, rows, stride, state, gradient);
}

void HalfWeightGradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                        std::uint32_t last, const Bf16Pair* rows, Gradient state, float* gradient) {
  const auto run = [&](auto of_64, auto of_32) HWY_ATTR {
    (width == 64 ? of_64 : of_32)(starts, event_rows, first, last, rows, width / 2, state, gradient);
  };
#if HWY_TARGET <= HWY_AVX3
  if (adds_by_bf16_dot()) return run(weights<64, DottedRows>, weights<32, DottedRows>);
#endif
  run(weights<64, ShiftedRows>, weights<32, ShiftedRows>);
}

void InputGradient(int width, const float* tile, const float* rows, std::ptrdiff_t stride, std::size_t row_count,
                   const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  if (width == 64) return inputs<64, FullRows>(tile, rows, stride, row_count, offsets, ids, out);
  if (width == 32) return inputs<32, FullRows>(tile, rows, stride, row_count, offsets, ids, out);
  inputs<16, FullRows>(tile, rows, stride, row_count, offsets, ids, out);
}

void HalfInputGradient(int width, const Bf16Pair* tile, const Bf16Pair* rows, std::size_t row_count,
                       const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  const auto run = [&](auto of_64, auto of_32)
                       HWY_ATTR { (width == 64 ? of_64 : of_32)(tile, rows, width / 2, row_count, offsets, ids, out); };
#if HWY_TARGET <= HWY_AVX3
  if (multiplies_by_bf16_dot()) return run(inputs<64, DottedRows>, inputs<32, DottedRows>);
#endif
  run(inputs<64, ShiftedRows>, inputs<32, ShiftedRows>);
}

template <int kWidth>
void round_rows_of(const float* rows, std::size_t count, Bf16Pair* out) {
  constexpr int kVectors = kWidth / kLanes;
  for (; count != 0; --count, rows += kWidth, out += kWidth / 2) {
    Lanes row[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) row[i] = load(rows + i * kLanes);
    store_pairs(row, out);
  }
}

void RoundRows(int width, const float* rows, std::size_t count, Bf16Pair* out) {
  (width == 64 ? round_rows_of<64> : round_rows_of<32>)(rows, count, out);
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

HWY_EXPORT(WeightGradient);
HWY_EXPORT(HalfWeightGradient);
HWY_EXPORT(InputGradient);
HWY_EXPORT(HalfInputGradient);
HWY_EXPORT(RoundRows);
HWY_EXPORT(AddInOrder);

void weight_gradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                     std::uint32_t last, const float* rows, std::ptrdiff_t stride, Gradient state, float* gradient) {
  HWY_DYNAMIC_DISPATCH(WeightGradient)(width, starts, event_rows, first, last, rows, stride, state, gradient);
}

void weight_gradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                     std::uint32_t last, const Bf16Pair* rows, Gradient state, float* gradient) {
  HWY_DYNAMIC_DISPATCH(HalfWeightGradient)(width, starts, event_rows, first, last, rows, state, gradient);
}

void input_gradient(int width, const Bf16Pair* tile, const Bf16Pair* rows, std::size_t row_count,
                    const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  HWY_DYNAMIC_DISPATCH(HalfInputGradient)(width, tile, rows, row_count, offsets, ids, out);
}

void round_rows(int width, const float* rows, std::size_t count, Bf16Pair* out) {
  HWY_DYNAMIC_DISPATCH(RoundRows)(width, rows, count, out);
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
