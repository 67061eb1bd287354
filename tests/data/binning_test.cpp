// Binning against the definition, event by event; and batches of what it gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>
#include "core/random.hpp"
#include "data/spike_batch.hpp"

namespace spikeloom {
namespace {

std::vector<Event> random_events(RandomStream& random, std::size_t count, std::int64_t end_us, std::uint32_t channels) {
  std::vector<Event> events(count);
  for (Event& event : events) {
    event = {static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(end_us))),
             static_cast<std::uint32_t>(random.below(channels))};
  }
  return events;
}

using Counts = std::map<std::pair<std::int64_t, std::uint32_t>, std::uint64_t>;

/// Events per (step, channel), in the words of the definition.
Counts counted(const std::vector<Event>& events, const Binning& binning) {
  Counts counts;
  for (const Event& event : events) {
    const auto step = static_cast<std::int64_t>(
        std::floor(static_cast<double>(event.time_us) / static_cast<double>(binning.step_us)));
    if (step < binning.steps) ++counts[{step, event.channel / static_cast<std::uint32_t>(binning.channel_bin)}];
  }
  return counts;
}

class BinningOf : public ::testing::TestWithParam<Binning> {};

TEST_P(BinningOf, random_events_agrees_with_the_definition_and_counts_what_is_lost) {
  const Binning binning = GetParam();
  constexpr int kChannels = 53;
  RandomStream random(7, "binning");
  SpikeDataset data(binning, kChannels);
  EXPECT_EQ(data.channels(), (kChannels + binning.channel_bin - 1) / binning.channel_bin);
  BinningReport expected;
  std::vector<Counts> all;
  for (int sample = 0; sample < 40; ++sample) {
    const std::vector<Event> events =
        random_events(random, random.below(400), binning.step_us * binning.steps * 3 / 2 + 1, kChannels);
    data.add(events, sample % 3, sample, "test");
    all.push_back(counted(events, binning));
    std::uint64_t kept = 0;
    for (const auto& [place, count] : all.back()) kept += count;
    expected.events += events.size();
    expected.dropped_late += events.size() - kept;
    expected.spikes += binning.counts ? kept : all.back().size();
    expected.merged += binning.counts ? 0 : kept - all.back().size();
  }
  EXPECT_EQ(data.report().events, expected.events);
  EXPECT_EQ(data.report().dropped_late, expected.dropped_late);
  EXPECT_EQ(data.report().merged, expected.merged);
  EXPECT_EQ(data.report().spikes, expected.spikes);
  for (std::size_t sample = 0; sample < all.size(); ++sample) {
    const auto offsets = data.offsets(sample);
    const auto ids = data.ids(sample);
    ASSERT_EQ(offsets.size(), static_cast<std::size_t>(binning.steps) + 1);
    EXPECT_EQ(offsets.front(), 0U);
    ASSERT_EQ(offsets.back(), ids.size());
    Counts found;
    for (int step = 0; step < binning.steps; ++step) {
      const auto row = ids.subspan(offsets[step], offsets[step + 1] - offsets[step]);
      EXPECT_TRUE(std::is_sorted(row.begin(), row.end()));
      for (const std::uint32_t id : row) ++found[{step, id}];
    }
    Counts wanted = all[sample];
    if (!binning.counts) {
      for (auto& [place, count] : wanted) count = 1;
    }
    EXPECT_EQ(found, wanted);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, BinningOf,
                         ::testing::Values(Binning{10'000, 100, 1, false}, Binning{10'000, 100, 1, true},
                                           Binning{1, 7, 1, false}, Binning{4'000, 1, 1, true},
                                           Binning{999, 250, 5, false}, Binning{10'000, 30, 53, true},
                                           Binning{2'500, 64, 7, false}));

TEST(Binning, does_not_depend_on_the_order_of_events) {
  RandomStream random(3, "order");
  std::vector<Event> events = random_events(random, 500, 1'500'000, 700);
  SpikeDataset one({}, 700);
  one.add(events, 0, 0, "a");
  std::reverse(events.begin(), events.end());
  SpikeDataset other({}, 700);
  other.add(events, 0, 0, "a");
  EXPECT_TRUE(std::ranges::equal(one.ids(0), other.ids(0)));
  EXPECT_TRUE(std::ranges::equal(one.offsets(0), other.offsets(0)));
}

TEST(Binning, puts_edges_into_the_step_that_begins_there) {
  SpikeDataset data({10'000, 3, 1, false}, 4);
  data.add(std::vector<Event>{{0, 0}, {9'999, 1}, {10'000, 2}, {29'999, 3}, {30'000, 0}}, 0, 0, "edges");
  EXPECT_EQ(std::vector<std::uint32_t>(data.offsets(0).begin(), data.offsets(0).end()),
            (std::vector<std::uint32_t>{0, 2, 3, 4}));
  EXPECT_EQ(data.report().dropped_late, 1U);
  EXPECT_EQ(data.duration_us(0), 30'000);
}

TEST(Binning, an_empty_recording_is_a_sample) {
  SpikeDataset data({}, 700);
  data.add({}, 5, -1, "empty");
  EXPECT_EQ(data.size(), 1U);
  EXPECT_TRUE(data.ids(0).empty());
  EXPECT_EQ(data.offsets(0).size(), 101U);
  EXPECT_EQ(data.duration_us(0), 0);
  EXPECT_EQ(data.largest_label(), 5);
}

TEST(Binning, refuses_settings_that_make_no_sense) {
  EXPECT_THROW(SpikeDataset({0, 10, 1, false}, 5), UserError);
  EXPECT_THROW(SpikeDataset({10, 0, 1, false}, 5), UserError);
  EXPECT_THROW(SpikeDataset({10, 10, 0, false}, 5), UserError);
  EXPECT_THROW(SpikeDataset({10, 10, 6, false}, 5), UserError);
  EXPECT_THROW(SpikeDataset({10, 10, 1, false}, 0), UserError);
  SpikeDataset data({10, 10, 1, false}, 5);
  EXPECT_THROW(data.add(std::vector<Event>{{0, 5}}, 0, 0, "a"), InternalError);
  EXPECT_THROW(data.add(std::vector<Event>{{-1, 0}}, 0, 0, "a"), InternalError);
  EXPECT_EQ(data.size(), 0U);
}

TEST(Batch, holds_the_named_samples_in_the_order_named) {
  RandomStream random(9, "batch");
  SpikeDataset data({10'000, 20, 1, false}, 30);
  for (int sample = 0; sample < 10; ++sample)
    data.add(random_events(random, random.below(50), 250'000, 30), sample, 0, "test");
  SpikeBatch batch;
  for (const std::vector<std::uint32_t>& samples :
       {std::vector<std::uint32_t>{7, 0, 7, 3}, {}, {9}}) {  // storage is reused
    gather_batch(data, samples, batch);
    EXPECT_EQ(batch.samples, static_cast<int>(samples.size()));
    EXPECT_EQ(batch.steps, 20);
    EXPECT_EQ(batch.neurons, 30);
    ASSERT_EQ(batch.offsets.size(), batch.rows() + 1);
    ASSERT_EQ(batch.labels.size(), samples.size());
    EXPECT_EQ(batch.offsets.back(), batch.ids.size());
    std::size_t events = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      EXPECT_EQ(batch.labels[i], data.label(samples[i]));
      events += data.ids(samples[i]).size();
      for (std::size_t step = 0; step < 20; ++step) {
        const std::size_t row = i * 20 + step;
        const auto offsets = data.offsets(samples[i]);
        EXPECT_TRUE(std::ranges::equal(
            std::span(batch.ids).subspan(batch.offsets[row], batch.offsets[row + 1] - batch.offsets[row]),
            data.ids(samples[i]).subspan(offsets[step], offsets[step + 1] - offsets[step])));
      }
    }
    EXPECT_EQ(batch.events(), events);
    EXPECT_DOUBLE_EQ(
        batch.activity(),
        samples.empty() ? 0.0 : static_cast<double>(events) / (static_cast<double>(samples.size()) * 20 * 30));
  }
  EXPECT_THROW(gather_batch(data, std::vector<std::uint32_t>{10}, batch), InternalError);
}

}  // namespace
}  // namespace spikeloom
