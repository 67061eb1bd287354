#include "data/encode/inner_ear.hpp"

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/random.hpp"
#include "core/worker_team.hpp"
#include "data/encode/basilar_membrane.hpp"
#include "data/encode/inner_ear_kernel.hpp"
#include "sound.hpp"

namespace spikeloom {

bool operator==(const Event& a, const Event& b) { return a.time_us == b.time_us && a.channel == b.channel; }

namespace {

using testing::babble;
using testing::sine;

const std::shared_ptr<const EarTables>& tables() {
  static const auto shared = [] {
    WorkerTeam team(2);
    return make_ear_tables(team);
  }();
  return shared;
}

std::vector<Event> encode(const std::vector<float>& samples, int sample_rate, std::uint64_t seed = 1,
                          std::uint64_t number = 0) {
  return InnerEar(tables()).encode(samples, sample_rate, seed, number);
}

/// Events per 20 neighbouring channels.
std::vector<double> profile(const std::vector<Event>& events) {
  std::vector<double> counts(InnerEar::kChannels / 20, 0.0);
  for (const Event& event : events) counts[event.channel / 20] += 1.0;
  return counts;
}

double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) difference += std::abs(a[i] - b[i]), size += a[i];
  return difference / size;
}

TEST(InnerEar, TheSameSeedAndNumberGiveTheSameEventsWhateverWasEncodedBefore) {
  const auto sound = babble(0.3, 16'000);
  InnerEar used(tables());
  used.encode(sine(300.0, 0.5, 8'000), 8'000, 7, 3);
  EXPECT_EQ(used.encode(sound, 16'000, 1, 2), encode(sound, 16'000, 1, 2));
  EXPECT_NE(encode(sound, 16'000, 1, 2), encode(sound, 16'000, 1, 3));
  EXPECT_NE(encode(sound, 16'000, 1, 2), encode(sound, 16'000, 2, 2));
}

TEST(InnerEar, TablesDoNotDependOnTheNumberOfThreads) {
  WorkerTeam one(1);
  const auto sound = babble(0.2, 16'000);
  EXPECT_EQ(InnerEar(make_ear_tables(one)).encode(sound, 16'000, 1, 0), encode(sound, 16'000));
}

TEST(InnerEar, EveryInstructionSetGivesTheSameEvents) {
  const auto sound = babble(0.25, 16'000);
  const auto expected = encode(sound, 16'000);
  int tried = 0;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(encode(sound, 16'000), expected) << hwy::TargetName(target);
    ++tried;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  EXPECT_GE(tried, 1);
}

TEST(InnerEar, TheFibresDrawExponentialsOfPhiloxBits) {
  const std::array<std::uint32_t, 2> key{0x12345678U, 0x9abcdef0U};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const std::uint32_t first : {0U, 16U, 0xfffffff0U}) {
      float numbers[kEarDraws];
      draw_ear_exponentials(key, 613, first, numbers);
      for (std::size_t i = 0; i < kEarDraws; ++i) {
        const auto block = philox4x32({first + static_cast<std::uint32_t>(i % kEarDrawBlocks), 613, 0, 0}, key);
        const double u = ((block[i / kEarDrawBlocks] >> 9) + 0.5) / (1 << 23);
        ASSERT_NEAR(numbers[i], -std::log(u), 1e-6 * (1.0 - std::log(u))) << hwy::TargetName(target) << ' ' << i;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST(InnerEar, EventsAreInOrderAndWithinTheRecording) {
  const auto events = encode(babble(0.3, 16'000), 16'000);
  ASSERT_GT(events.size(), 500U);
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_GE(events[i].time_us, 0);
    ASSERT_LE(events[i].time_us, 300'042);
    ASSERT_LT(events[i].channel, 700U);
    if (i == 0) continue;
    ASSERT_LT(std::pair(events[i - 1].time_us, events[i - 1].channel), std::pair(events[i].time_us, events[i].channel));
  }
}

TEST(InnerEar, NoChannelSpikesWithinItsRefractoryPeriod) {
  std::vector<std::int64_t> last(InnerEar::kChannels, -10'000);
  for (const Event& event : encode(babble(0.3, 16'000), 16'000)) {
    ASSERT_GE(event.time_us - last[event.channel], 999);
    last[event.channel] = event.time_us;
  }
}

TEST(InnerEar, LoudnessDoesNotMatter) {
  const auto quiet = babble(0.3, 16'000, 0.0005);
  const auto loud = babble(0.3, 16'000, 0.3);
  const auto a = encode(quiet, 16'000), b = encode(loud, 16'000);
  EXPECT_NEAR(static_cast<double>(a.size()), static_cast<double>(b.size()), 0.005 * static_cast<double>(b.size()));
  EXPECT_LT(relative_distance(profile(a), profile(b)), 0.01);
}

TEST(InnerEar, TheSampleRateHardlyMatters) {
  const auto expected = encode(babble(0.4, 48'000), 48'000);
  for (const int rate : {8'000, 16'000, 22'050, 44'100}) {
    const auto events = encode(babble(0.4, rate), rate);
    EXPECT_NEAR(static_cast<double>(events.size()), static_cast<double>(expected.size()),
                0.05 * static_cast<double>(expected.size()))
        << rate;
    EXPECT_LT(relative_distance(profile(expected), profile(events)), 0.12) << rate;
  }
}

TEST(InnerEar, ATonePeaksAtThePlaceThatIsTunedToIt) {
  const BasilarMembrane membrane;
  for (const double hz : {200.0, 500.0, 1000.0, 3000.0, 6000.0}) {
    const auto counts = profile(encode(sine(hz, 0.4, 48'000), 48'000));
    const auto channel =
        20.0 * static_cast<double>(std::max_element(counts.begin(), counts.end()) - counts.begin()) + 10.0;
    const double tuned = membrane.resonance_hz(3.5 * channel / 699.0);
    EXPECT_GT(tuned, 0.8 * hz) << hz;
    EXPECT_LT(tuned, 1.6 * hz) << hz;
  }
}

TEST(InnerEar, SilenceAndNearlyNothingGiveNoEvents) {
  EXPECT_TRUE(encode(std::vector<float>(4000, 0.0F), 16'000).empty());
  EXPECT_TRUE(encode({}, 16'000).empty());
  EXPECT_TRUE(encode({0.5F}, 48'000).empty());
  encode({0.5F, -0.5F}, 48'000);  // two samples are a recording
  encode({0.5F, -0.5F, 0.1F}, 48'000);
}

TEST(InnerEar, ExtremeLoudnessStaysFinite) {
  std::vector<float> huge = babble(0.2, 16'000);
  for (float& x : huge) x *= 1e30F;
  std::vector<float> tiny = babble(0.2, 16'000);
  for (float& x : tiny) x *= 1e-30F;
  const auto expected = static_cast<double>(encode(babble(0.2, 16'000), 16'000).size());
  EXPECT_NEAR(static_cast<double>(encode(huge, 16'000).size()), expected, 0.02 * expected);
  EXPECT_NEAR(static_cast<double>(encode(tiny, 16'000).size()), expected, 0.02 * expected);
}

}  // namespace
}  // namespace spikeloom
