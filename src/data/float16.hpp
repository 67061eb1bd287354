// IEEE 754 half precision, as SHD stores its times: no arithmetic, only the way in and out.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace spikeloom {

/// Largest finite half.
inline constexpr double kFloat16Max = 65504.0;

/// The nearest half (ties to even) as its bits; beyond the largest finite half, infinity.
inline std::uint16_t float16_bits(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7C00U);  // halfway to the next power of two
  if (magnitude <
      0x1p-14) {  // subnormal: a multiple of 2^-24; a carry into the smallest normal number has the right bits
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24)));
  }
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [1/2, 1)
  // 11 significant bits, the leading one implied; a carry moves into the exponent field, as it should.
  const auto significand = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(fraction, 11)));
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(exponent + 13) << 10) + significand));
}

/// Exact.
inline double float16_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  double magnitude = 0.0;
  if (exponent == 0x1F) {
    magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = fraction * 0x1p-24;
  } else {
    // A double with the same significand: its exponent bias is 1023 instead of 15.
    magnitude = std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1008) << 52 |
                                      static_cast<std::uint64_t>(fraction) << 42);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace spikeloom
