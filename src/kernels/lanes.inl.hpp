// A register of neurons as a number: what the model files compute with inside the kernels. Included by every kernel
// once per instruction set.

// clang-format off
#if defined(SPIKELOOM_KERNELS_LANES_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef SPIKELOOM_KERNELS_LANES_INL_HPP_
#undef SPIKELOOM_KERNELS_LANES_INL_HPP_
#else
#define SPIKELOOM_KERNELS_LANES_INL_HPP_
#endif
// clang-format on

#include <hwy/highway.h>

// Loops over the registers of a tile must be unrolled for the sums to stay in registers: rolled, each row-add goes
// through memory and takes three times as long (GCC 12 at -O2; Sapphire Rapids, 2026).
#ifndef SPIKELOOM_UNROLL
#define SPIKELOOM_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using FloatVector = hn::Vec<Floats>;
inline constexpr int kLanes =
    static_cast<int>(hn::MaxLanes(Floats()));  // exact on all targets that are built: none is scalable
inline constexpr int kSixteen = 16 / kLanes;   // registers of 16 columns

struct Lanes {
  FloatVector v;
};
struct LaneMask {
  hn::Mask<Floats> m;
};

HWY_INLINE Lanes lanes(float value) { return {hn::Set(Floats(), value)}; }
HWY_INLINE Lanes load(const float* from) { return {hn::Load(Floats(), from)}; }
HWY_INLINE Lanes load_unaligned(const float* from) { return {hn::LoadU(Floats(), from)}; }
HWY_INLINE void store(Lanes a, float* to) { hn::Store(a.v, Floats(), to); }
HWY_INLINE void store_unaligned(Lanes a, float* to) { hn::StoreU(a.v, Floats(), to); }

HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return {hn::Add(a.v, b.v)}; }
HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return {hn::Sub(a.v, b.v)}; }
HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return {hn::Mul(a.v, b.v)}; }
HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return {hn::Div(a.v, b.v)}; }
HWY_INLINE LaneMask operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
HWY_INLINE LaneMask operator<=(Lanes a, Lanes b) { return {hn::Le(a.v, b.v)}; }
HWY_INLINE LaneMask operator&(LaneMask a, LaneMask b) { return {hn::And(a.m, b.m)}; }
HWY_INLINE Lanes mul_add(Lanes a, Lanes b, Lanes c) { return {hn::MulAdd(a.v, b.v, c.v)}; }
HWY_INLINE Lanes select(LaneMask mask, Lanes yes, Lanes no) { return {hn::IfThenElse(mask.m, yes.v, no.v)}; }
HWY_INLINE Lanes only(LaneMask mask, Lanes a) { return {hn::IfThenElseZero(mask.m, a.v)}; }
HWY_INLINE Lanes abs_of(Lanes a) { return {hn::Abs(a.v)}; }
HWY_INLINE Lanes max_of(Lanes a, Lanes b) { return {hn::Max(a.v, b.v)}; }

/// Values below 1e-30 become 0: decaying membranes and deltas would otherwise reach the subnormals, which are slow on
/// every CPU.
HWY_INLINE Lanes flush_tiny(Lanes a) {
  return {hn::IfThenElseZero(hn::Ge(hn::Abs(a.v), hn::Set(Floats(), 1e-30f)), a.v)};
}

/// One neuron, where a register for it would cost more than it saves.
HWY_INLINE float mul_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/// The mask as bits, lane 0 lowest.
HWY_INLINE std::uint64_t bits_of(LaneMask mask) {
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(Floats(), mask.m, bytes);
  std::uint64_t bits;
  __builtin_memcpy(&bits, bytes, sizeof bits);
  return bits;
}

HWY_INLINE LaneMask mask_of(std::uint64_t bits) {
  std::uint8_t bytes[8];
  __builtin_memcpy(bytes, &bits, sizeof bits);
  return {hn::LoadMaskBits(Floats(), bytes)};
}

}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
