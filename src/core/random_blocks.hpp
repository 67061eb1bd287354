// The part of the random numbers that is worth vector instructions; use RandomStream::uniforms_at.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spikeloom {

inline constexpr std::size_t kRandomBlocks = 32;

/// The first two words of the Philox4x32 blocks at the counters (first + i * stride, number), i < kRandomBlocks.
void random_first_words(std::uint64_t first, std::uint64_t stride, std::uint64_t number, std::uint64_t key,
                        std::uint64_t* high, std::uint64_t* low);

}  // namespace spikeloom
