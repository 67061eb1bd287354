#include "data/augmentation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <spikeloom/error.hpp>

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
enum Draw : std::uint64_t {
  kShiftX,
  kShiftY,
  kTimeShift,
  kStretch,
  kChannelMask,
  kStepMask = 6,
  kMerge = 8,
  kPartner,
  kFirstEvent = 16
};
constexpr std::uint64_t kDrawsPerEvent = 3;

}  // namespace

Augmenter::Augmenter(const AugmentationSpec& spec, const SpikeDataset& data, std::uint64_t seed,
                     std::span<const std::uint32_t> partners)
    : spec_(spec),
      data_(data),
      seed_(seed),
      keeps_order_(spec.channel_jitter == 0.0 && spec.time_stretch.low == 1.0 && spec.time_stretch.high == 1.0 &&
                   spec.merge == 0.0) {
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
  if (spec.merge == 0.0) return;
  for (const std::uint32_t sample : partners) {
    const auto label = static_cast<std::size_t>(data.label(sample));
    if (label >= of_class_.size()) of_class_.resize(label + 1);
    of_class_[label].push_back(sample);
  }
}

void Augmenter::gather(std::span<const std::uint32_t> samples, std::uint64_t epoch, WorkerTeam& team,
                       SpikeBatch& batch) {
  if (!spec_.any()) return gather_batch(data_, samples, batch);
  for (const std::uint32_t sample : samples) {
    if (sample >= data_.size()) throw InternalError("a batch names a sample that the data set lacks");
  }
  scratch_.resize(team.size());
  changed_.resize(samples.size());
  team.for_each(samples.size(), [&](std::size_t i, int worker) {
    Scratch& scratch = scratch_[worker];
    change(samples[i], epoch, scratch);
    if (!keeps_order_) sort(scratch);
    list(scratch.spikes, changed_[i]);
  });
  batch.samples = static_cast<int>(samples.size());
  batch.steps = data_.steps();
  batch.neurons = data_.channels();
  batch.offsets.assign(1, 0);
  batch.ids.clear();
  batch.labels.clear();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto start = static_cast<std::uint32_t>(batch.ids.size());
    if (batch.ids.size() + changed_[i].ids.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw UserError("a batch of more than 2^32 spikes; make the batch smaller");
    }
    for (const std::uint32_t end : changed_[i].ends) batch.offsets.push_back(start + end);
    batch.ids.insert(batch.ids.end(), changed_[i].ids.begin(), changed_[i].ids.end());
    batch.labels.push_back(data_.label(samples[i]));
  }
}

std::optional<std::uint32_t> Augmenter::partner_of(std::uint32_t sample, const RandomStream& random) const {
  const std::uint64_t base = static_cast<std::uint64_t>(sample) << 32;
  const auto label = static_cast<std::size_t>(data_.label(sample));
  if (spec_.merge == 0.0 || label >= of_class_.size() || of_class_[label].empty()) return std::nullopt;
  if (random.uniform_at(base + kMerge) >= spec_.merge) return std::nullopt;
  const std::vector<std::uint32_t>& others = of_class_[label];
  const std::uint32_t partner = others[random.below_at(base + kPartner, others.size())];
  return partner == sample ? std::nullopt : std::optional(partner);
}

/// The sample's spikes after all changes, in any order, into scratch.spikes.
void Augmenter::change(std::uint32_t sample, std::uint64_t epoch, Scratch& scratch) const {
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

  std::vector<Spike>& spikes = scratch.spikes;
  spikes.clear();
  // Without jitter a channel moves to the same place in the whole sample.
  std::vector<std::int32_t>& moved = scratch.moved;
  moved.resize(data_.channels());
  for (std::int64_t channel = 0; channel < data_.channels(); ++channel) {
    const std::int64_t to = grid.moved(channel, dx, dy);
    moved[channel] = static_cast<std::int32_t>(channels.covers(to) ? -1 : to);
  }
  const std::optional<std::uint32_t> partner = partner_of(sample, random);
  const std::size_t own = data_.ids(sample).size();
  // Of two samples that are merged half of the events stay.
  const double lost = partner ? (1.0 + spec_.drop) / 2.0 : spec_.drop;
  if (lost > 0.0) {
    scratch.dropped.resize(own + (partner ? data_.ids(*partner).size() : 0));
    random.uniforms_at(base + kFirstEvent, kDrawsPerEvent, scratch.dropped);
  }
  /// Adds the events of `source`, whose random numbers start after those of `before` events.
  const auto add = [&](std::uint32_t source, std::size_t before) {
    const std::span<const std::uint32_t> offsets = data_.offsets(source);
    const std::span<const std::uint32_t> ids = data_.ids(source);
    for (std::int64_t t = 0; t < data_.steps(); ++t) {
      for (std::uint32_t e = offsets[t]; e < offsets[t + 1]; ++e) {
        const std::uint64_t draw = base + kFirstEvent + kDrawsPerEvent * (before + e);
        if (lost > 0.0 && scratch.dropped[before + e] < lost) continue;
        // Where within its step an event was is forgotten; drawing it anew leaves no comb of empty steps.
        std::int64_t step = t;
        if (stretched) {
          step = static_cast<std::int64_t>((static_cast<double>(t) + random.uniform_at(draw + 1)) * stretch);
        }
        step += later;
        std::int64_t id = moved[ids[e]];
        if (spec_.channel_jitter > 0.0) {
          id = grid.moved(ids[e], dx + std::llround(spec_.channel_jitter * random.normal_at(draw + 2)), dy);
          if (channels.covers(id)) continue;
        }
        if (step < 0 || step >= data_.steps() || id < 0 || steps.covers(step)) continue;
        spikes.push_back({static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(id)});
      }
    }
  };
  add(sample, 0);
  if (partner) add(*partner, own);
}

/// By step, and by id within a step: two counting sorts, by id and then, stably, by step.
void Augmenter::sort(Scratch& scratch) const {
  std::vector<std::uint32_t>& ends = scratch.ends;
  const auto sorted = [&](const std::vector<Spike>& spikes, std::size_t buckets, auto key, auto put) {
    ends.assign(buckets + 1, 0);
    for (const Spike& spike : spikes) ++ends[key(spike) + 1];
    for (std::size_t b = 0; b < buckets; ++b) ends[b + 1] += ends[b];
    for (const Spike& spike : spikes) put(ends[key(spike)]++, spike);
  };
  scratch.by_id.resize(scratch.spikes.size());
  sorted(
      scratch.spikes, static_cast<std::size_t>(data_.channels()), [](const Spike& spike) { return spike.id; },
      [&](std::uint32_t place, const Spike& spike) { scratch.by_id[place] = spike; });
  sorted(
      scratch.by_id, static_cast<std::size_t>(data_.steps()), [](const Spike& spike) { return spike.step; },
      [&](std::uint32_t place, const Spike& spike) { scratch.spikes[place] = spike; });
}

/// Sorted spikes as rows; where only one spike of a channel and step counts, further ones are left out.
void Augmenter::list(const std::vector<Spike>& spikes, Changed& out) const {
  const bool counts = data_.binning().counts;
  out.ends.clear();
  out.ids.clear();
  std::size_t at = 0;
  for (std::uint32_t step = 0; step < static_cast<std::uint32_t>(data_.steps()); ++step) {
    const std::size_t row = out.ids.size();
    for (; at < spikes.size() && spikes[at].step == step; ++at) {
      const std::uint32_t id = spikes[at].id;
      const bool again = out.ids.size() > row && out.ids.back() == id;
      if (!again || counts) out.ids.push_back(id);
    }
    out.ends.push_back(static_cast<std::uint32_t>(out.ids.size()));
  }
}

}  // namespace spikeloom
