// What is held out: every sample on one side, every class in proportion, and the same each time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>
#include "core/random.hpp"
#include "data/describe.hpp"

namespace spikeloom {
namespace {

/// Classes of very different sizes, in one block each, as folders give them; class 4 never occurs and class 5 once.
SpikeDataset uneven() {
  SpikeDataset data({}, 10);
  const std::map<int, int> sizes{{0, 100}, {1, 37}, {2, 2}, {3, 61}, {5, 1}};
  for (const auto& [label, size] : sizes) {
    for (int i = 0; i < size; ++i)
      data.add(std::vector<Event>(static_cast<std::size_t>(i % 4), Event{5'000, 1}), label, i % 5, "test");
  }
  return data;
}

std::map<int, std::size_t> per_class(const SpikeDataset& data, const std::vector<std::uint32_t>& samples) {
  std::map<int, std::size_t> counts;
  for (const std::uint32_t sample : samples) ++counts[data.label(sample)];
  return counts;
}

void expect_partition(const SpikeDataset& data, const Split& split) {
  EXPECT_TRUE(std::is_sorted(split.train.begin(), split.train.end()));
  EXPECT_TRUE(std::is_sorted(split.held_out.begin(), split.held_out.end()));
  std::vector<std::uint32_t> all;
  std::merge(split.train.begin(), split.train.end(), split.held_out.begin(), split.held_out.end(),
             std::back_inserter(all));
  std::vector<std::uint32_t> expected(data.size());
  std::iota(expected.begin(), expected.end(), 0U);
  EXPECT_EQ(all, expected);
}

TEST(SplitFraction, holds_out_the_fraction_of_each_class) {
  const SpikeDataset data = uneven();
  for (const double fraction : {0.01, 0.1, 0.25, 0.5, 0.99}) {
    const Split split = split_fraction(data, fraction, 1);
    expect_partition(data, split);
    std::vector<std::uint32_t> everything(data.size());
    std::iota(everything.begin(), everything.end(), 0U);
    auto held_out = per_class(data, split.held_out);
    for (const auto& [label, size] : per_class(data, everything)) {
      if (size == 1) {
        EXPECT_EQ(held_out[label], 0U);
        continue;
      }
      const double wanted = std::clamp(fraction * static_cast<double>(size), 1.0, static_cast<double>(size - 1));
      EXPECT_NEAR(static_cast<double>(held_out[label]), wanted, 0.5) << label << " " << fraction;
    }
  }
  EXPECT_TRUE(split_fraction(data, 0.0, 1).held_out.empty());
  EXPECT_THROW(split_fraction(data, 1.0, 1), UserError);
  EXPECT_THROW(split_fraction(data, -0.1, 1), UserError);
}

TEST(SplitFraction, is_a_function_of_the_seed) {
  const SpikeDataset data = uneven();
  EXPECT_EQ(split_fraction(data, 0.2, 1).held_out, split_fraction(data, 0.2, 1).held_out);
  EXPECT_NE(split_fraction(data, 0.2, 1).held_out, split_fraction(data, 0.2, 2).held_out);
}

TEST(SplitFold, folds_are_stratified_and_hold_each_sample_once) {
  const SpikeDataset data = uneven();
  for (const int folds : {2, 3, 5, 10}) {
    std::vector<int> times_held_out(data.size(), 0);
    std::map<int, std::pair<std::size_t, std::size_t>> range;  // fewest and most of a class in a fold
    for (int fold = 1; fold <= folds; ++fold) {
      const Split split = split_fold(data, fold, folds);
      expect_partition(data, split);
      for (const std::uint32_t sample : split.held_out) ++times_held_out[sample];
      auto counts = per_class(data, split.held_out);
      counts[-1] = split.held_out.size();
      for (const int label : {-1, 0, 1, 2, 3, 5}) {
        auto [it, first] = range.try_emplace(label, counts[label], counts[label]);
        it->second = {std::min(it->second.first, counts[label]), std::max(it->second.second, counts[label])};
      }
    }
    for (const int times : times_held_out) EXPECT_EQ(times, 1);
    for (const auto& [label, bounds] : range)
      EXPECT_LE(bounds.second - bounds.first, 1U) << "class " << label << " of " << folds;
  }
}

TEST(SplitFold, is_no_run_of_neighbours) {
  const SpikeDataset data = uneven();
  const std::vector<std::uint32_t> held_out = split_fold(data, 1, 5).held_out;
  std::size_t neighbours = 0;
  for (std::size_t i = 1; i < held_out.size(); ++i) neighbours += held_out[i] == held_out[i - 1] + 1 ? 1 : 0;
  EXPECT_LT(neighbours, held_out.size() / 2);
  EXPECT_EQ(held_out, split_fold(data, 1, 5).held_out);
}

TEST(SplitFold, refuses_folds_that_do_not_exist_or_leave_nothing) {
  const SpikeDataset data = uneven();
  EXPECT_THROW(split_fold(data, 0, 5), UserError);
  EXPECT_THROW(split_fold(data, 6, 5), UserError);
  EXPECT_THROW(split_fold(data, 1, 1), UserError);
  SpikeDataset two({}, 10);
  two.add({}, 0, 0, "a");
  two.add({}, 0, 0, "b");
  EXPECT_THROW(split_fold(two, 3, 3), UserError);
}

TEST(SplitSpeakers, holds_out_all_of_the_named_and_no_other) {
  const SpikeDataset data = uneven();
  const std::vector<int> speakers{4, 1};
  const Split split = split_speakers(data, speakers);
  expect_partition(data, split);
  for (const std::uint32_t sample : split.held_out) EXPECT_TRUE(data.speaker(sample) == 4 || data.speaker(sample) == 1);
  for (const std::uint32_t sample : split.train) EXPECT_TRUE(data.speaker(sample) != 4 && data.speaker(sample) != 1);
  EXPECT_THROW(split_speakers(data, std::vector<int>{9}), UserError);
  EXPECT_THROW(split_speakers(data, std::vector<int>{0, 1, 2, 3, 4}), UserError);
}

TEST(Describe, counts_what_is_there) {
  SpikeDataset data({10'000, 10, 1, false}, 20);
  data.add(std::vector<Event>{{0, 1}, {5'000, 1}, {50'000, 2}, {99'999, 3}, {100'000, 4}}, 2, 7, "a");
  data.add({}, 0, 3, "b");
  data.add(std::vector<Event>{{40'000, 0}}, 2, 3, "c");
  const DatasetDescription description = describe(data);
  EXPECT_EQ(description.samples, 3U);
  EXPECT_EQ(description.classes, 3);
  EXPECT_EQ(description.channels, 20);
  EXPECT_DOUBLE_EQ(description.duration_ms, 100.0);
  EXPECT_DOUBLE_EQ(description.mean_duration_ms, 140.0 / 3);
  EXPECT_EQ(description.events, 6U);
  EXPECT_DOUBLE_EQ(description.events_per_sample, 2.0);
  EXPECT_EQ(description.fewest_events, 0U);
  EXPECT_EQ(description.most_events, 5U);
  EXPECT_EQ(description.empty_samples, 1U);
  EXPECT_EQ(description.cut_samples, 1U);
  EXPECT_EQ(description.dropped_events, 1U);
  EXPECT_EQ(description.merged_events, 1U);
  EXPECT_EQ(description.spikes, 4U);
  EXPECT_DOUBLE_EQ(description.activity, 4.0 / (3 * 10 * 20));
  EXPECT_EQ(description.samples_per_class, (std::vector<std::uint64_t>{1, 0, 2}));
  EXPECT_EQ(description.speakers, (std::vector<int>{3, 7}));
  EXPECT_EQ(describe(SpikeDataset({}, 5)).classes, 0);
}

}  // namespace
}  // namespace spikeloom
