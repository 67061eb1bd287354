#include "core/elementary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/random.hpp"

namespace spikeloom {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Elementary, FloatExponentialIsWithinTwoUlpOverItsRange) {
  RandomStream random(1, "test");
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    const auto x = static_cast<float>(random.uniform(-87.2, 88.2));
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(static_cast<double>(exponential(x)) - exact) / exact);
  }
  EXPECT_LT(worst, 2 * 0x1p-24);
}

TEST(Elementary, FloatExponentialKeepsItsPromiseAtTheEdges) {
  EXPECT_EQ(exponential(0.0F), 1.0F);
  EXPECT_EQ(exponential(-1000.0F), 0.0F);
  EXPECT_EQ(exponential(-kInfinity), 0.0F);
  EXPECT_EQ(exponential(kInfinity), kInfinity);
  EXPECT_EQ(exponential(1000.0F), kInfinity);
  EXPECT_TRUE(std::isnan(exponential(kNan)));
}

TEST(Elementary, DoubleExponentialAndLogarithmAgreeWithLibm) {
  RandomStream random(2, "test");
  double worst_exp = 0.0;
  double worst_log = 0.0;
  for (int i = 0; i < 200000; ++i) {
    const double x = random.uniform(-700.0, 700.0);
    const double exact = std::exp(x);
    worst_exp = std::max(worst_exp, std::fabs(exponential(x) - exact) / exact);
    const double y = i % 2 ? exact : random.uniform(0.5, 2.0);
    const double log = std::log(y);
    if (log != 0.0) worst_log = std::max(worst_log, std::fabs(logarithm(y) - log) / std::fabs(log));
  }
  EXPECT_LT(worst_exp, 4 * 0x1p-53);
  EXPECT_LT(worst_log, 4 * 0x1p-53);
  EXPECT_EQ(logarithm(1.0), 0.0);
  EXPECT_EQ(logarithm(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(logarithm(-1.0)));
  EXPECT_TRUE(std::isnan(logarithm(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_NEAR(logarithm(5e-320), std::log(5e-320), 1e-12);
  EXPECT_TRUE(std::isnan(exponential(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Elementary, CosineOfHalfTurnsAgreesWithLibm) {
  for (int i = 0; i <= 1000; ++i)
    EXPECT_NEAR(cosine_of_half_turns(i / 1000.0), std::cos(std::numbers::pi * i / 1000.0), 6e-16);
}

TEST(Elementary, IntegerPowerAgreesWithPow) {
  for (std::uint64_t n : {0U, 1U, 2U, 17U, 1000U}) EXPECT_NEAR(integer_power(0.999, n), std::pow(0.999, n), 1e-13);
}

}  // namespace
}  // namespace spikeloom
