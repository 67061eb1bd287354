// Sixteen sums side by side: two loads a cycle and an addition that takes four cycles want at least eight.
#include "kernels/read_memory.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/read_memory.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

constexpr int kSums = 16;

float total_of(const Lanes (&sums)[kSums]) {
  Lanes total = sums[0];
  for (int i = 1; i < kSums; ++i) total = total + sums[i];
  alignas(64) float values[kLanes];
  store(total, values);
  float sum = 0.0f;
  for (const float value : values) sum += value;
  return sum;
}

float ReadInOrder(const float* from, std::size_t count) {
  Lanes sums[kSums];
  SPIKELOOM_UNROLL
  for (int i = 0; i < kSums; ++i) sums[i] = lanes(0.0f);
  for (const float* end = from + count; from != end; from += kSums * kLanes) {
    SPIKELOOM_UNROLL
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] + load(from + i * kLanes);
  }
  return total_of(sums);
}

float ReadRows(const float* from, const std::uint32_t* ids, std::size_t count) {
  constexpr int kVectors = 64 / kLanes;
  Lanes sums[kSums];
  SPIKELOOM_UNROLL
  for (int i = 0; i < kSums; ++i) sums[i] = lanes(0.0f);
  for (const std::uint32_t* end = ids + count; ids != end; ++ids) {
    const float* row = from + std::size_t{*ids} * 64;
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) sums[i % kSums] = sums[i % kSums] + load(row + i * kLanes);
  }
  return total_of(sums);
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom::kernels {

HWY_EXPORT(ReadInOrder);
HWY_EXPORT(ReadRows);

float read_in_order(const float* from, std::size_t count) { return HWY_DYNAMIC_DISPATCH(ReadInOrder)(from, count); }

float read_rows(const float* from, const std::uint32_t* ids, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(ReadRows)(from, ids, count);
}

}  // namespace spikeloom::kernels
#endif
