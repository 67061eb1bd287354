#include "data/augmentation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <spikeloom/error.hpp>

#include "core/random.hpp"

namespace spikeloom {
namespace {

/// A uniform draw from -limit .. limit.
std::int64_t shift_at(const RandomStream& random, std::uint64_t index, int limit) {
  return static_cast<std::int64_t>(random.below_at(index, 2 * static_cast<std::uint64_t>(limit) + 1)) - limit;
}

/// What is silenced: a stretch of up to `longest` neighbours out of `size`.
struct Mask {
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool covers(std::int64_t place) const { return place >= first && place < end; }
};

Mask mask_at(const RandomStream& random, std::uint64_t index, int longest, int size) {
  const auto length = static_cast<std::int64_t>(random.below_at(index, static_cast<std::uint64_t>(longest) + 1));
  const auto first = static_cast<std::int64_t>(random.below_at(index + 1, static_cast<std::uint64_t>(size)));
  return {first, first + length};
}

/// Channels as planes of `height` rows of `width`, as a camera has them; a line is one row.
struct Grid {
  std::int64_t width;
  std::int64_t height;

  /// The channel `dx` to the right and `dy` below; -1 if it is outside.
  std::int64_t moved(std::int64_t channel, std::int64_t dx, std::int64_t dy) const {
    const std::int64_t x = channel % width + dx;
    const std::int64_t y = channel / width % height + dy;
    return x < 0 || x >= width || y < 0 || y >= height ? -1 : channel + dy * width + dx;
  }
};

// Where in a sample's random numbers what is drawn: once per sample (a mask takes two), then three times per event.
enum Draw : std::uint64_t { kShiftX, kShiftY, kTimeShift, kStretch, kChannelMask, kStepMask = 6, kFirstEvent = 16 };
constexpr std::uint64_t kDrawsPerEvent = 3;

}  // namespace

Augmenter::Augmenter(const AugmentationSpec& spec, const SpikeDataset& data, std::uint64_t seed)
    : spec_(spec), data_(data), seed_(seed) {
  if ((spec.image_width == 0) != (spec.image_height == 0)) {
    throw UserError(fmt::format("augmentation.image_width = {}, image_height = {}; allowed: both 0, or both above 0",
                                spec.image_width, spec.image_height));
  }
  const std::int64_t pixels = static_cast<std::int64_t>(spec.image_width) * spec.image_height;
  if (pixels > 0 && data.channels() % pixels != 0) {
    throw UserError(fmt::format(
        "augmentation.image_width = {}, image_height = {}; allowed: what divides the input of {} channels into images",
        spec.image_width, spec.image_height, data.channels()));
  }
}

void Augmenter::gather(std::span<const std::uint32_t> samples, std::uint64_t epoch, SpikeBatch& batch) {
  if (!spec_.any()) return gather_batch(data_, samples, batch);
  batch.samples = static_cast<int>(samples.size());
  batch.steps = data_.steps();
  batch.neurons = data_.channels();
  batch.offsets.assign(1, 0);
  batch.ids.clear();
  batch.labels.clear();
  for (const std::uint32_t sample : samples) {
    if (sample >= data_.size()) throw InternalError("a batch names a sample that the data set lacks");
    change(sample, epoch);
    if (batch.ids.size() + spikes_.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw UserError("a batch of more than 2^32 spikes; make the batch smaller");
    }
    append(batch);
    batch.labels.push_back(data_.label(sample));
  }
}

/// The sample's spikes after all changes, in any order, into spikes_.
void Augmenter::change(std::uint32_t sample, std::uint64_t epoch) {
  const RandomStream random(seed_, "augmentation", epoch);
  const std::uint64_t base = static_cast<std::uint64_t>(sample) << 32;
  const bool image = spec_.image_width > 0;
  const Grid grid = image ? Grid{spec_.image_width, spec_.image_height} : Grid{data_.channels(), 1};
  const std::int64_t dx = shift_at(random, base + kShiftX, spec_.channel_shift);
  const std::int64_t dy = image ? shift_at(random, base + kShiftY, spec_.channel_shift) : 0;
  const std::int64_t later = shift_at(random, base + kTimeShift, spec_.time_shift_steps);
  const Range& range = spec_.time_stretch;
  const bool stretched = range.low != 1.0 || range.high != 1.0;
  const double stretch = range.low + (range.high - range.low) * random.uniform_at(base + kStretch);
  const Mask channels = mask_at(random, base + kChannelMask, spec_.mask_channels, data_.channels());
  const Mask steps = mask_at(random, base + kStepMask, spec_.mask_steps, data_.steps());

  const std::span<const std::uint32_t> offsets = data_.offsets(sample);
  const std::span<const std::uint32_t> ids = data_.ids(sample);
  spikes_.clear();
  for (std::int64_t t = 0; t < data_.steps(); ++t) {
    for (std::uint32_t e = offsets[t]; e < offsets[t + 1]; ++e) {
      const std::uint64_t draw = base + kFirstEvent + kDrawsPerEvent * e;
      if (spec_.drop > 0.0 && random.uniform_at(draw) < spec_.drop) continue;
      // Where within its step an event was is forgotten; drawing it anew leaves no comb of empty steps.
      std::int64_t step = t;
      if (stretched) {
        step = static_cast<std::int64_t>((static_cast<double>(t) + random.uniform_at(draw + 1)) * stretch);
      }
      step += later;
      std::int64_t off = dx;
      if (spec_.channel_jitter > 0.0) off += std::llround(spec_.channel_jitter * random.normal_at(draw + 2));
      const std::int64_t id = grid.moved(ids[e], off, dy);
      if (step < 0 || step >= data_.steps() || id < 0 || channels.covers(id) || steps.covers(step)) continue;
      spikes_.push_back({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(id)});
    }
  }
}

/// Appends spikes_ as one sample's rows: two counting sorts, by id and then, stably, by step.
void Augmenter::append(SpikeBatch& batch) {
  const auto sorted = [&](const std::vector<Spike>& spikes, std::size_t buckets, auto key, auto put) {
    ends_.assign(buckets + 1, 0);
    for (const Spike& spike : spikes) ++ends_[key(spike) + 1];
    for (std::size_t b = 0; b < buckets; ++b) ends_[b + 1] += ends_[b];
    for (const Spike& spike : spikes) put(ends_[key(spike)]++, spike);
  };
  by_id_.resize(spikes_.size());
  sorted(
      spikes_, static_cast<std::size_t>(batch.neurons), [](const Spike& spike) { return spike.id; },
      [&](std::uint32_t place, const Spike& spike) { by_id_[place] = spike; });
  sorted(
      by_id_, static_cast<std::size_t>(batch.steps), [](const Spike& spike) { return spike.step; },
      [&](std::uint32_t place, const Spike& spike) { spikes_[place] = spike; });
  std::size_t at = 0;
  for (std::uint32_t step = 0; step < static_cast<std::uint32_t>(batch.steps); ++step) {
    const std::size_t row = batch.ids.size();
    for (; at < spikes_.size() && spikes_[at].step == step; ++at) {
      const std::uint32_t id = spikes_[at].id;
      const bool again = batch.ids.size() > row && batch.ids.back() == id;
      if (!again || data_.binning().counts) batch.ids.push_back(id);
    }
    batch.offsets.push_back(static_cast<std::uint32_t>(batch.ids.size()));
  }
}

}  // namespace spikeloom
