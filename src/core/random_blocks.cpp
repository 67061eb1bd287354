// Many blocks of Philox4x32 at once: plain loops over counters, compiled once per instruction set and vectorised by the
// compiler. Integers only, so the bits are those of one block at a time.
#include "core/random_blocks.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/random_blocks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace spikeloom::HWY_NAMESPACE {
namespace {

// Words are kept in the lower halves of 64 bits: a product of two of them is then one instruction.
void FirstWords(std::uint64_t first, std::uint64_t stride, std::uint64_t number, std::uint64_t key,
                std::uint64_t* __restrict high, std::uint64_t* __restrict low) {
  constexpr std::uint64_t kWord = 0xFFFFFFFFU;
  std::uint64_t a[kRandomBlocks], b[kRandomBlocks], c[kRandomBlocks], d[kRandomBlocks];
  for (std::size_t i = 0; i < kRandomBlocks; ++i) {
    const std::uint64_t index = first + i * stride;
    a[i] = index & kWord;
    b[i] = index >> 32;
    c[i] = number & kWord;
    d[i] = number >> 32;
  }
  std::uint64_t key0 = key & kWord, key1 = key >> 32;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kRandomBlocks; ++i) {
      const std::uint64_t product0 = (a[i] & kWord) * 0xD2511F53U;
      const std::uint64_t product1 = (c[i] & kWord) * 0xCD9E8D57U;
      a[i] = (product1 >> 32) ^ b[i] ^ key0;
      b[i] = product1 & kWord;
      c[i] = (product0 >> 32) ^ d[i] ^ key1;
      d[i] = product0 & kWord;
    }
    key0 = (key0 + 0x9E3779B9U) & kWord;
    key1 = (key1 + 0xBB67AE85U) & kWord;
  }
  for (std::size_t i = 0; i < kRandomBlocks; ++i) high[i] = a[i], low[i] = b[i];
}

}  // namespace
}  // namespace spikeloom::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom {

HWY_EXPORT(FirstWords);

void random_first_words(std::uint64_t first, std::uint64_t stride, std::uint64_t number, std::uint64_t key,
                        std::uint64_t* high, std::uint64_t* low) {
  HWY_DYNAMIC_DISPATCH(FirstWords)(first, stride, number, key, high, low);
}

}  // namespace spikeloom
#endif
