#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace spikeloom {
namespace {

struct KnownAnswer {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> result;
};

// The vectors for "philox 4x32 10" that Random123 publishes with its library (file kat_vectors): zeros, ones, and
// digits of pi.
const KnownAnswer kKnownAnswers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

TEST(Philox, GivesThePublishedKnownAnswers) {
  for (const KnownAnswer& known : kKnownAnswers) EXPECT_EQ(philox4x32(known.counter, known.key), known.result);
}

std::vector<double> draw_uniform(const RandomStream& stream, std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = stream.uniform_at(i);
  return values;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean_of(a), mean_b = mean_of(b);
  double ab = 0.0, aa = 0.0, bb = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

constexpr std::size_t kDraws = 100'000;
// Five standard deviations: with fixed seeds the tests are deterministic, and a correct generator fails one in two
// million times over the choice of seed.
constexpr double kSigmas = 5.0;

TEST(RandomStream, UniformNumbersFillTheUnitIntervalEvenly) {
  const std::vector<double> values = draw_uniform(RandomStream(1, "test"), kDraws);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 0.0);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1.0);
  EXPECT_NEAR(mean_of(values), 0.5, kSigmas * std::sqrt(1.0 / 12.0 / kDraws));

  // Chi-square over 100 cells: mean 99, variance 198.
  std::vector<double> cells(100, 0.0);
  for (const double value : values) cells[static_cast<std::size_t>(value * 100.0)] += 1.0;
  double chi_square = 0.0;
  for (const double cell : cells) chi_square += (cell - kDraws / 100.0) * (cell - kDraws / 100.0) / (kDraws / 100.0);
  EXPECT_NEAR(chi_square, 99.0, kSigmas * std::sqrt(198.0));
}

TEST(RandomStream, NeighbouringDrawsAreUncorrelated) {
  const std::vector<double> values = draw_uniform(RandomStream(1, "test"), kDraws + 1);
  const std::vector<double> first(values.begin(), values.end() - 1), second(values.begin() + 1, values.end());
  EXPECT_NEAR(correlation(first, second), 0.0, kSigmas / std::sqrt(kDraws));
}

TEST(RandomStream, NormalNumbersHaveTheMomentsOfTheStandardNormal) {
  const RandomStream stream(3, "test");
  double sum = 0.0, squares = 0.0, fourths = 0.0;
  std::size_t beyond_two = 0;
  for (std::size_t i = 0; i < kDraws; ++i) {
    const double value = stream.normal_at(i);
    sum += value;
    squares += value * value;
    fourths += value * value * value * value;
    beyond_two += std::abs(value) > 2.0;
  }
  const double n = kDraws;
  EXPECT_NEAR(sum / n, 0.0, kSigmas / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1.0, kSigmas * std::sqrt(2.0 / n));
  EXPECT_NEAR(fourths / n, 3.0, kSigmas * std::sqrt(96.0 / n));
  constexpr double kBeyondTwo = 0.0455003;
  EXPECT_NEAR(static_cast<double>(beyond_two) / n, kBeyondTwo, kSigmas * std::sqrt(kBeyondTwo / n));
}

TEST(RandomStream, IntegersBelowABoundAreInRangeAndEven) {
  const RandomStream stream(4, "test");
  constexpr std::uint64_t kBound = 7;
  std::vector<double> cells(kBound, 0.0);
  for (std::size_t i = 0; i < kDraws; ++i) {
    const std::uint64_t value = stream.below_at(i, kBound);
    ASSERT_LT(value, kBound);
    cells[value] += 1.0;
  }
  double chi_square = 0.0;
  for (const double cell : cells) chi_square += (cell - kDraws / 7.0) * (cell - kDraws / 7.0) / (kDraws / 7.0);
  EXPECT_NEAR(chi_square, 6.0, kSigmas * std::sqrt(12.0));
  EXPECT_EQ(stream.below_at(0, 1), 0U);
}

TEST(RandomStream, StreamsThatDifferInSeedPurposeOrNumberAreIndependent) {
  const std::vector<std::vector<double>> streams = {draw_uniform(RandomStream(1, "weights/a", 0), kDraws),
                                                    draw_uniform(RandomStream(2, "weights/a", 0), kDraws),
                                                    draw_uniform(RandomStream(1, "weights/b", 0), kDraws),
                                                    draw_uniform(RandomStream(1, "weights/a", 1), kDraws),
                                                    draw_uniform(RandomStream(1, "", 0), kDraws),
                                                    draw_uniform(RandomStream(1ULL << 32, "weights/a", 0), kDraws)};
  for (std::size_t a = 0; a < streams.size(); ++a) {
    for (std::size_t b = a + 1; b < streams.size(); ++b) {
      EXPECT_NEAR(correlation(streams[a], streams[b]), 0.0, kSigmas / std::sqrt(kDraws))
          << "streams " << a << " and " << b;
    }
  }
}

TEST(RandomStream, NoTwoOfManyStreamsStartAlike) {
  std::set<std::uint64_t> starts;
  std::size_t streams = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const char* purpose : {"shuffle", "weights/hidden1", "weights/hidden2", "decay/hidden1"}) {
      for (std::uint64_t number = 0; number < 20; ++number, ++streams) {
        const RandomStream stream(seed, purpose, number);
        starts.insert(std::uint64_t{stream.bits_at(0)} << 32 | stream.bits_at(1));
      }
    }
  }
  EXPECT_EQ(starts.size(), streams);
}

TEST(RandomStream, RunningDrawsEqualTheDrawsAtTheirIndices) {
  RandomStream running(5, "test", 2);
  const RandomStream fixed(5, "test", 2);
  EXPECT_EQ(running.uniform(), fixed.uniform_at(0));
  EXPECT_EQ(running.normal(), fixed.normal_at(1));
  EXPECT_EQ(running.below(1000), fixed.below_at(2, 1000));
  EXPECT_EQ(running.uniform(-2.0, 6.0), -2.0 + 8.0 * fixed.uniform_at(3));
}

TEST(RandomStream, IndicesBeyond32BitsAreDistinct) {
  const RandomStream stream(1, "test");
  EXPECT_NE(stream.bits_at(0), stream.bits_at(1ULL << 32));
}

TEST(RandomStream, APermutationHoldsEveryIndexOnce) {
  for (const std::size_t size : {0, 1, 2, 3, 64, 1000}) {
    std::vector<std::uint32_t> order = RandomStream(1, "shuffle").permutation(size);
    ASSERT_EQ(order.size(), size);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(order[i], i);
  }
}

TEST(RandomStream, PermutationsRepeatWithTheSeedAndChangeWithTheNumber) {
  EXPECT_EQ(RandomStream(1, "shuffle", 3).permutation(100), RandomStream(1, "shuffle", 3).permutation(100));
  EXPECT_NE(RandomStream(1, "shuffle", 3).permutation(100), RandomStream(1, "shuffle", 4).permutation(100));
}

TEST(RandomStream, EveryOrderOfThreeIsEquallyLikely) {
  std::vector<double> cells(27, 0.0);
  constexpr int kRepeats = 6000;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto order = RandomStream(9, "shuffle", static_cast<std::uint64_t>(repeat)).permutation(3);
    cells[order[0] * 9 + order[1] * 3 + order[2]] += 1.0;
  }
  double chi_square = 0.0;
  int orders = 0;
  for (const double cell : cells) {
    if (cell == 0.0) continue;
    ++orders;
    chi_square += (cell - kRepeats / 6.0) * (cell - kRepeats / 6.0) / (kRepeats / 6.0);
  }
  EXPECT_EQ(orders, 6);
  EXPECT_NEAR(chi_square, 5.0, kSigmas * std::sqrt(10.0));
}

TEST(RandomStream, ManyUniformsAtOnceAreTheSameNumbers) {
  const RandomStream random(7, "many", (std::uint64_t{3} << 32) + 5);
  for (const std::size_t count : {0, 1, 31, 32, 33, 100}) {
    for (const std::uint64_t stride : {1, 3}) {
      const std::uint64_t first = (std::uint64_t{9} << 32) - 40;  // the lower word of the counter overflows on the way
      std::vector<double> values(count);
      random.uniforms_at(first, stride, values);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], random.uniform_at(first + i * stride)) << i;
    }
  }
}

}  // namespace
}  // namespace spikeloom
