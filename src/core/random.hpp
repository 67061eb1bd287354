// Counter-based random numbers: the value is a function of (seed, stream, index) alone, so it does not depend on who
// asks first, on how many threads ask, or on where a run was resumed. Philox4x32-10 (Salmon et al., SC 2011).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace spikeloom {

/// Ten rounds of Philox4x32 on a 128-bit counter with a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// One independent sequence of random numbers. Copies are cheap; `at` functions have no state.
class RandomStream {
 public:
  /// `purpose` separates the uses of one seed ("shuffle", "weights/hidden1", ...); `number` separates repetitions of
  /// one use (the epoch, say).
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t number = 0);

  std::uint32_t bits_at(std::uint64_t index) const;
  /// Uniform in [0, 1), 53 bits.
  double uniform_at(std::uint64_t index) const;
  /// values[i] = uniform_at(first + i * stride): for many at a time, some five times as fast.
  void uniforms_at(std::uint64_t first, std::uint64_t stride, std::span<double> values) const;
  /// Standard normal (Box-Muller on uniform_at's stream; the same on every machine up to libm's log, cos in double
  /// rounded to float).
  double normal_at(std::uint64_t index) const;
  /// Uniform integer in [0, bound), bound >= 1, without bias worth naming (64-bit multiply-shift).
  std::uint64_t below_at(std::uint64_t index, std::uint64_t bound) const;

  // The same, from a running index.
  double uniform() { return uniform_at(next_++); }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal() { return normal_at(next_++); }
  std::uint64_t below(std::uint64_t bound) { return below_at(next_++, bound); }

  /// A random order of 0 .. size-1 (Fisher-Yates).
  std::vector<std::uint32_t> permutation(std::size_t size);

 private:
  std::array<std::uint32_t, 4> block_at(std::uint64_t index) const;

  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 2> number_;
  std::uint64_t next_ = 0;
};

}  // namespace spikeloom
