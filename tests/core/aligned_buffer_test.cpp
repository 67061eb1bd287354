#include "core/aligned_buffer.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace spikeloom {
namespace {

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % kCacheLine == 0; }

TEST(AlignedBuffer, StartsAtACacheLineAndAtZero) {
  for (const std::size_t size : {1, 3, 16, 17, 1000}) {
    const AlignedBuffer<float> buffer(size);
    EXPECT_TRUE(aligned(buffer.data()));
    ASSERT_EQ(buffer.size(), size);
    for (const float value : buffer) EXPECT_EQ(value, 0.0F);
  }
}

TEST(AlignedBuffer, OfNoElementsOwnsNothing) {
  const AlignedBuffer<int> buffer(0), unset;
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_TRUE(unset.empty());
}

TEST(AlignedBuffer, CopiesAreDeep) {
  AlignedBuffer<int> original(5);
  original[2] = 7;
  AlignedBuffer<int> copy(original);
  copy[2] = 8;
  EXPECT_EQ(original[2], 7);
  EXPECT_EQ(copy[2], 8);
  copy = original;
  EXPECT_EQ(copy[2], 7);
  EXPECT_NE(copy.data(), original.data());
}

TEST(AlignedBuffer, MovesLeaveTheSourceEmpty) {
  AlignedBuffer<int> original(5);
  original[4] = 9;
  const int* storage = original.data();
  const AlignedBuffer<int> moved(std::move(original));
  EXPECT_EQ(moved.data(), storage);
  EXPECT_EQ(moved[4], 9);
  EXPECT_TRUE(original.empty());  // NOLINT(bugprone-use-after-move): this is what is tested
}

TEST(AlignedBuffer, ReserveGrowsAndNeverShrinks) {
  AlignedBuffer<double> buffer;
  buffer.reserve_discard(10);
  EXPECT_EQ(buffer.size(), 10U);
  EXPECT_TRUE(aligned(buffer.data()));
  const double* storage = buffer.data();
  buffer.reserve_discard(4);
  EXPECT_EQ(buffer.size(), 10U);
  EXPECT_EQ(buffer.data(), storage);
  buffer.fill(2.5);
  EXPECT_EQ(buffer[9], 2.5);
}

TEST(AlignedBuffer, ThrowsWhenMemoryRunsOut) {
  EXPECT_THROW(AlignedBuffer<double>(std::numeric_limits<std::size_t>::max() / 64), std::bad_alloc);
}

}  // namespace
}  // namespace spikeloom
