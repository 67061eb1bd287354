// Each change against its definition; and what a sample becomes depends on seed, epoch and sample alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include <spikeloom/error.hpp>

#include "core/random.hpp"
#include "data/augmentation.hpp"

namespace spikeloom {
namespace {

constexpr int kSteps = 40;
constexpr int kChannels = 60;
using Spikes = std::multiset<std::pair<int, int>>;  // (step, channel)

SpikeDataset random_data(bool counts = false, int samples = 12) {
  RandomStream random(5, "augmentation test");
  SpikeDataset data({1'000, kSteps, 1, counts}, kChannels);
  for (int sample = 0; sample < samples; ++sample) {
    std::vector<Event> events(sample == 3 ? 0 : 400);
    for (Event& event : events) {
      event = {static_cast<std::int64_t>(random.below(kSteps * 1'000)),
               static_cast<std::uint32_t>(random.below(kChannels))};
    }
    data.add(events, sample % 4, 0, "test");
  }
  return data;
}

Spikes spikes_of(const SpikeBatch& batch, int sample) {
  Spikes spikes;
  for (int step = 0; step < batch.steps; ++step) {
    const std::size_t row = static_cast<std::size_t>(sample) * batch.steps + step;
    for (std::uint32_t e = batch.offsets[row]; e < batch.offsets[row + 1]; ++e) {
      spikes.insert({step, static_cast<int>(batch.ids[e])});
    }
  }
  return spikes;
}

Spikes one(const SpikeDataset& data, const AugmentationSpec& spec, std::uint32_t sample, std::uint64_t epoch = 0) {
  SpikeBatch batch;
  WorkerTeam team(1);
  Augmenter(spec, data, 1, {}).gather(std::vector<std::uint32_t>{sample}, epoch, team, batch);
  EXPECT_EQ(batch.offsets.size(), batch.rows() + 1);
  EXPECT_EQ(batch.offsets.back(), batch.ids.size());
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    EXPECT_TRUE(std::is_sorted(batch.ids.begin() + batch.offsets[row], batch.ids.begin() + batch.offsets[row + 1]));
  }
  return spikes_of(batch, 0);
}

Spikes moved(const Spikes& spikes, int steps, int dx, int dy = 0, int width = kChannels, int height = 1) {
  Spikes result;
  for (const auto& [step, channel] : spikes) {
    const int x = channel % width + dx;
    const int y = channel / width % height + dy;
    if (step + steps < 0 || step + steps >= kSteps || x < 0 || x >= width || y < 0 || y >= height) continue;
    result.insert({step + steps, channel / (width * height) * width * height + y * width + x});
  }
  return result;
}

AugmentationSpec everything() {
  AugmentationSpec spec;
  spec.channel_shift = 4;
  spec.channel_jitter = 1.0;
  spec.time_shift_steps = 3;
  spec.time_stretch = {0.7, 1.4};
  spec.drop = 0.2;
  spec.mask_channels = 9;
  spec.mask_steps = 5;
  return spec;
}

TEST(Augmentation, is_off_by_default) {
  const SpikeDataset data = random_data();
  EXPECT_FALSE(AugmentationSpec{}.any());
  const std::vector<std::uint32_t> samples{5, 3, 0};
  SpikeBatch plain;
  SpikeBatch batch;
  gather_batch(data, samples, plain);
  WorkerTeam team(2);
  Augmenter(AugmentationSpec{}, data, 1, {}).gather(samples, 7, team, batch);
  EXPECT_EQ(batch.ids, plain.ids);
  EXPECT_EQ(batch.offsets, plain.offsets);
  EXPECT_EQ(batch.labels, plain.labels);
}

TEST(Augmentation, makes_the_same_of_a_sample_in_any_batch_and_something_else_in_another_epoch) {
  const SpikeDataset data = random_data();
  const std::vector<std::uint32_t> samples{8, 3, 11, 0};
  SpikeBatch batch;
  WorkerTeam team(3, false);  // one() has a team of one
  Augmenter augmenter(everything(), data, 1, {});
  augmenter.gather(std::vector<std::uint32_t>{1, 2}, 6, team, batch);  // storage is reused
  augmenter.gather(samples, 2, team, batch);
  EXPECT_EQ(batch.labels, (std::vector<int>{0, 3, 3, 0}));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(spikes_of(batch, static_cast<int>(i)), one(data, everything(), samples[i], 2));
  }
  EXPECT_NE(one(data, everything(), 8, 2), one(data, everything(), 8, 3));
  SpikeBatch other_seed;
  Augmenter(everything(), data, 2, {}).gather(samples, 2, team, other_seed);
  EXPECT_NE(other_seed.ids, batch.ids);
  EXPECT_TRUE(spikes_of(batch, 1).empty());  // an empty sample stays empty
}

TEST(Augmentation, shifts_in_channel_and_time_move_all_spikes_alike_and_reach_both_ends) {
  const SpikeDataset data = random_data();
  const Spikes before = one(data, {}, 1);
  AugmentationSpec spec;
  spec.channel_shift = 2;
  spec.time_shift_steps = 1;
  std::set<std::pair<int, int>> seen;
  for (std::uint64_t epoch = 0; epoch < 400; ++epoch) {
    const Spikes after = one(data, spec, 1, epoch);
    for (int steps = -1; steps <= 1; ++steps) {
      for (int channels = -2; channels <= 2; ++channels) {
        if (after == moved(before, steps, channels)) seen.insert({steps, channels});
      }
    }
  }
  EXPECT_EQ(seen.size(), 15U);
}

TEST(Augmentation, shifts_of_an_image_keep_its_rows_and_planes_apart) {
  const SpikeDataset data = random_data();
  const Spikes before = one(data, {}, 1);
  AugmentationSpec spec;
  spec.channel_shift = 1;
  spec.image_width = 6;
  spec.image_height = 5;  // 60 channels: two planes
  std::set<std::pair<int, int>> seen;
  for (std::uint64_t epoch = 0; epoch < 300; ++epoch) {
    const Spikes after = one(data, spec, 1, epoch);
    for (int dx = -1; dx <= 1; ++dx) {
      for (int dy = -1; dy <= 1; ++dy) {
        if (after == moved(before, 0, dx, dy, 6, 5)) seen.insert({dx, dy});
      }
    }
  }
  EXPECT_EQ(seen.size(), 9U);
  spec.image_height = 7;
  EXPECT_THROW(Augmenter(spec, data, 1, {}), UserError);
  spec.image_height = 0;
  EXPECT_THROW(Augmenter(spec, data, 1, {}), UserError);
}

TEST(Augmentation, stretching_keeps_channels_and_puts_spikes_within_a_step_of_their_new_time) {
  const SpikeDataset data = random_data(true);
  AugmentationSpec spec;
  spec.time_stretch = {0.5, 0.5};
  const Spikes before = one(data, {}, 1);
  Spikes halved;
  for (const auto& [step, channel] : before) halved.insert({step / 2, channel});
  EXPECT_EQ(one(data, spec, 1), halved);  // of a whole step's events, all fall into the one half as long

  spec.time_stretch = {1.5, 1.5};
  std::set<int> steps;
  for (const auto& [step, channel] : one(data, spec, 1)) steps.insert(step);
  EXPECT_EQ(steps.size(), kSteps);  // no comb of empty steps
}

TEST(Augmentation, drops_the_share_that_is_asked_for) {
  const SpikeDataset data = random_data(true);
  AugmentationSpec spec;
  spec.drop = 0.3;
  double left = 0.0;
  for (std::uint64_t epoch = 0; epoch < 100; ++epoch) {
    const Spikes before = one(data, {}, 1);
    const Spikes after = one(data, spec, 1, epoch);
    EXPECT_TRUE(std::ranges::includes(before, after));
    left += static_cast<double>(after.size()) / static_cast<double>(before.size());
  }
  EXPECT_NEAR(left / 100, 0.7, 0.01);  // standard error 0.0023
}

TEST(Augmentation, masks_silence_one_band_and_nothing_else) {
  const SpikeDataset data = random_data(true);
  const Spikes before = one(data, {}, 1);
  AugmentationSpec spec;
  spec.mask_channels = 7;
  int longest = 0;
  for (std::uint64_t epoch = 0; epoch < 300; ++epoch) {
    const Spikes after = one(data, spec, 1, epoch);
    std::set<int> lost;
    for (const auto& spike : before) {
      if (after.count(spike) != before.count(spike)) lost.insert(spike.second);
    }
    for (const auto& [step, channel] : after) EXPECT_FALSE(lost.contains(channel));
    if (lost.empty()) continue;
    longest = std::max(longest, *lost.rbegin() - *lost.begin() + 1);
  }
  EXPECT_EQ(longest, 7);
}

TEST(Augmentation, jitter_moves_events_by_the_deviation_that_is_asked_for) {
  SpikeDataset data({1'000, kSteps, 1, true}, kChannels);
  std::vector<Event> events(4'000, Event{0, 30});
  data.add(events, 0, 0, "test");
  AugmentationSpec spec;
  spec.channel_jitter = 3.0;
  double squares = 0.0;
  const Spikes after = one(data, spec, 0);
  ASSERT_EQ(after.size(), events.size());
  for (const auto& [step, channel] : after) squares += (channel - 30) * (channel - 30);
  EXPECT_NEAR(squares / 4'000, 9.0 + 1.0 / 12, 0.8);  // rounding adds 1/12; four standard errors
}

TEST(Augmentation, merging_takes_half_of_the_events_of_two_samples_of_a_class) {
  const SpikeDataset data = random_data(true);  // labels 0 to 3 in turn, sample 3 empty
  AugmentationSpec spec;
  spec.merge = 1.0;
  const std::vector<std::uint32_t> partners{0, 1, 4, 5, 8};
  const Spikes own = one(data, {}, 1);
  const Spikes other = one(data, {}, 5);  // the only one of label 1 beside itself
  double share_of_own = 0.0, share_of_other = 0.0;
  int merged = 0, alone = 0;
  WorkerTeam team(1);
  Augmenter augmenter(spec, data, 1, partners);
  for (std::uint64_t epoch = 0; epoch < 200; ++epoch) {
    SpikeBatch batch;
    augmenter.gather(std::vector<std::uint32_t>{1}, epoch, team, batch);
    EXPECT_EQ(batch.labels[0], 1);
    const Spikes after = spikes_of(batch, 0);
    if (after == own) {  // it drew itself
      ++alone;
      continue;
    }
    ++merged;
    Spikes both = own;
    both.insert(other.begin(), other.end());
    EXPECT_TRUE(std::ranges::includes(both, after));
    Spikes from_own;
    std::ranges::set_intersection(after, own, std::inserter(from_own, from_own.end()));
    share_of_own += static_cast<double>(from_own.size()) / static_cast<double>(own.size());
    share_of_other += static_cast<double>(after.size() - from_own.size()) / static_cast<double>(other.size());
  }
  EXPECT_NEAR(alone, 100, 36);  // five standard deviations
  // An event that both samples have counts as the first one's if only the second one's was kept.
  Spikes common;
  std::ranges::set_intersection(own, other, std::inserter(common, common.end()));
  const double shared = 0.25 * static_cast<double>(common.size()) / static_cast<double>(own.size());
  EXPECT_NEAR(share_of_own / merged, 0.5 + shared, 0.015);
  EXPECT_NEAR(share_of_other / merged, 0.5 - shared, 0.015);
}

TEST(Augmentation, merging_is_as_probable_as_asked_for_and_spares_samples_without_partner) {
  const SpikeDataset data = random_data(true);
  AugmentationSpec spec;
  spec.merge = 0.3;
  WorkerTeam team(1);
  Augmenter augmenter(spec, data, 1, std::vector<std::uint32_t>{5, 6});
  int merged = 0;
  for (std::uint64_t epoch = 0; epoch < 1000; ++epoch) {
    SpikeBatch batch;
    augmenter.gather(std::vector<std::uint32_t>{1, 0, 5}, epoch, team, batch);
    merged += spikes_of(batch, 0) != one(data, {}, 1);
    EXPECT_EQ(spikes_of(batch, 1), one(data, {}, 0));  // no partner of its class
    EXPECT_EQ(spikes_of(batch, 2), one(data, {}, 5));  // none but itself
  }
  EXPECT_NEAR(merged, 300, 73);  // five standard deviations
}

TEST(Augmentation, several_events_in_one_place_are_one_spike_unless_they_count) {
  for (const bool counts : {false, true}) {
    const SpikeDataset data = random_data(counts);
    AugmentationSpec spec;
    spec.time_stretch = {0.1, 0.1};
    const Spikes after = one(data, spec, 1);
    const bool distinct = std::set(after.begin(), after.end()).size() == after.size();
    EXPECT_EQ(distinct, !counts);
  }
}

}  // namespace
}  // namespace spikeloom
