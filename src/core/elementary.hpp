// exp, log and cos that give the same bits on every machine: only +, -, *, / in a fixed order (libm's differ between
// versions and architectures, and a difference in the last bit of a softmax flips a spike some steps later).
// Branch-free, so that the compiler vectorises loops over them.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace spikeloom {

/// e^x to 1.5 ulp; 0 below -87.3 (no subnormals), infinity above 88.3, NaN for NaN.
inline float exponential(float x) {
  constexpr float kLow = -87.3F;
  constexpr float kHigh = 88.3F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer, which then sits in the low bits
  float clamped = x < kLow ? kLow : x;   // comparisons written so that NaN passes through
  clamped = clamped > kHigh ? kHigh : clamped;
  const float shifted = clamped * 1.44269504F + kRound;
  const float n = shifted - kRound;
  const float r = (clamped - n * 0.693359375F) - n * -2.12194440e-4F;  // ln 2 in two parts, the first exact in 10 bits
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRound) + 127U;
  const float result = p * std::bit_cast<float>(exponent << 23);
  const float low_cut = x < kLow ? 0.0F : result;
  return x > kHigh ? std::numeric_limits<float>::infinity() : low_cut;
}

/// e^x to 2 ulp; 0 below -708, infinity above 709, NaN for NaN.
inline double exponential(double x) {
  constexpr double kLow = -708.0;
  constexpr double kHigh = 709.0;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  double clamped = x < kLow ? kLow : x;
  clamped = clamped > kHigh ? kHigh : clamped;
  const double shifted = clamped * 1.4426950408889634 + kRound;
  const double n = shifted - kRound;
  const double r = (clamped - n * 0x1.62e42fefa0000p-1) - n * 0x1.cf79abc9e3b3ap-40;
  double p = 1.0 / 6227020800.0;  // Taylor to r^13: |r| <= 0.347, so the rest is below 4e-18
  constexpr double kInverseFactorial[] = {1.0 / 479001600.0,
                                          1.0 / 39916800.0,
                                          1.0 / 3628800.0,
                                          1.0 / 362880.0,
                                          1.0 / 40320.0,
                                          1.0 / 5040.0,
                                          1.0 / 720.0,
                                          1.0 / 120.0,
                                          1.0 / 24.0,
                                          1.0 / 6.0,
                                          0.5};
  for (const double c : kInverseFactorial) p = p * r + c;
  p = p * (r * r) + r + 1.0;
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) - std::bit_cast<std::uint64_t>(kRound) + 1023U;
  const double result = p * std::bit_cast<double>(exponent << 52);
  const double low_cut = x < kLow ? 0.0 : result;
  return x > kHigh ? std::numeric_limits<double>::infinity() : low_cut;
}

/// Natural logarithm of a normal x > 0, to 2 ulp; -infinity for 0, NaN for x < 0 and NaN, infinity for infinity.
inline double logarithm(double x) {
  if (!(x > 0.0)) {
    return x == 0.0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (x > std::numeric_limits<double>::max()) return x;
  double lift = 0.0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1.0p54;
    lift = -54.0;
  }
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m - 1) / (m + 1)).
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t moved = bits - 0x3fe6a09e667f3bcdULL;  // bits of sqrt(1/2)
  const auto e = static_cast<std::int64_t>(moved) >> 52;
  const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(e) << 52));
  const double f = (m - 1.0) / (m + 1.0);
  const double f2 = f * f;
  double p = 0.0;
  for (int k = 23; k >= 3; k -= 2) p = (p + 1.0 / k) * f2;
  const double n = static_cast<double>(e) + lift;
  return n * 0x1.62e42fefa0000p-1 + ((2.0 * f + 2.0 * f * p) + n * 0x1.cf79abc9e3b3ap-40);
}

/// cos(pi * x) for x in [0, 1], to 5e-16.
inline double cosine_of_half_turns(double x) {
  constexpr double kPi = 3.14159265358979323846;
  const bool flip = x > 0.5;
  const double y = kPi * (flip ? 1.0 - x : x);
  const bool sine = y > kPi / 4;  // cos y = sin(pi/2 - y)
  const double z = sine ? kPi / 2 - y : y;
  const double z2 = z * z;
  double sum = 1.0;
  for (int k = 18; k >= 2; k -= 2) sum = 1.0 - sum * z2 / (sine ? k * (k + 1.0) : (k - 1.0) * k);
  const double value = sine ? z * sum : sum;
  return flip ? -value : value;
}

/// base^exponent by repeated squaring.
inline double integer_power(double base, std::uint64_t exponent) {
  double result = 1.0;
  for (double square = base; exponent != 0; exponent >>= 1, square *= square) {
    if (exponent & 1U) result *= square;
  }
  return result;
}

}  // namespace spikeloom
