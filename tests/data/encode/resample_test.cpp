#include "data/encode/resample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sound.hpp"

namespace spikeloom {
namespace {

using testing::sine;

/// Largest difference away from the ends, where the filter sees the signal's edge.
double largest_error(const std::vector<float>& a, const std::vector<float>& b, std::size_t margin) {
  double error = 0.0;
  for (std::size_t i = margin; i + margin < std::min(a.size(), b.size()); ++i)
    error = std::max(error, std::abs(double{a[i]} - b[i]));
  return error;
}

class EveryRate : public ::testing::TestWithParam<int> {};

TEST_P(EveryRate, SinesComeOutAsTheSameSines) {
  const int from = GetParam();
  for (const double part : {0.01, 0.1, 0.5, 0.8}) {
    const double hz = part * from / 2.0;
    const auto out = Resampler(from, 48'000)(sine(hz, 0.2, from));
    EXPECT_LT(largest_error(out, sine(hz, 0.2, 48'000), 1000), 0.005 * 0.5) << from << " Hz, sine of " << hz;
  }
}

TEST_P(EveryRate, AConstantStaysConstant) {
  const auto out = Resampler(GetParam(), 48'000)(std::vector<float>(2000, 0.25F));
  for (std::size_t i = 1000; i + 1000 < out.size(); ++i) ASSERT_NEAR(out[i], 0.25F, 1e-6F);
}

TEST_P(EveryRate, LengthIsTheDurationRoundedUp) {
  for (const std::size_t size : {1U, 2U, 147U, 1000U, 1803U}) {
    const auto out = Resampler(GetParam(), 48'000)(std::vector<float>(size, 0.0F));
    EXPECT_EQ(out.size(), (size * 48'000 + GetParam() - 1) / GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(Rates, EveryRate,
                         ::testing::Values(8'000, 11'025, 16'000, 22'050, 32'000, 44'100, 44'101, 48'000));

TEST(Resampler, WhatTheLowerRateCannotHoldIsRemoved) {
  const auto out = Resampler(48'000, 16'000)(sine(11'000.0, 0.2, 48'000));
  for (std::size_t i = 200; i + 200 < out.size(); ++i) ASSERT_LT(std::abs(out[i]), 0.002F);
}

TEST(Resampler, EqualRatesChangeNothing) {
  const auto in = sine(440.0, 0.05, 48'000);
  EXPECT_EQ(Resampler(48'000, 48'000)(in), in);
}

}  // namespace
}  // namespace spikeloom
