// Binning (DESIGN section 6): events become spikes, and what that drops or merges is counted.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

struct Spike {
  std::uint32_t step;
  std::uint32_t id;
};

/// Stable counting sort of `from` into `to` by `key`, which is below `keys`. Two of these (by id, then by step) put a
/// recording of any order in order in linear time. `ends[k]` becomes the end of key k.
template <class Key>
void sort_by(const std::vector<Spike>& from, std::vector<Spike>& to, std::size_t keys, std::vector<std::uint32_t>& ends,
             Key key) {
  ends.assign(keys + 1, 0);
  to.resize(from.size());
  for (const Spike& spike : from) ++ends[key(spike) + 1];
  for (std::size_t k = 0; k < keys; ++k) ends[k + 1] += ends[k];
  for (const Spike& spike : from) to[ends[key(spike)]++] = spike;
}

}  // namespace

SpikeDataset::SpikeDataset(Binning binning, int recorded_channels)
    : binning_(binning), recorded_channels_(recorded_channels) {
  if (binning.step_us < 1) throw UserError(fmt::format("step of {} us; allowed: at least 1 us", binning.step_us));
  if (binning.steps < 1) throw UserError(fmt::format("{} steps; allowed: at least 1", binning.steps));
  if (recorded_channels < 1) throw UserError(fmt::format("{} channels; allowed: at least 1", recorded_channels));
  if (binning.channel_bin < 1 || binning.channel_bin > recorded_channels) {
    throw UserError(fmt::format("channel_bin {}; allowed: 1 to the number of channels, {}", binning.channel_bin,
                                recorded_channels));
  }
  channels_ = (recorded_channels - 1) / binning.channel_bin + 1;
}

void SpikeDataset::add(std::span<const Event> events, int label, int speaker, std::string source) {
  if (events.size() >= std::numeric_limits<std::uint32_t>::max()) {
    throw UserError(fmt::format("{}: {} events in one recording; allowed: fewer than 2^32", source, events.size()));
  }
  const auto bin = static_cast<std::uint32_t>(binning_.channel_bin);
  const auto steps = static_cast<std::size_t>(binning_.steps);
  std::int64_t duration = 0;
  std::vector<Spike> spikes;
  spikes.reserve(events.size());
  for (const Event& event : events) {
    if (event.time_us < 0 || event.channel >= static_cast<std::uint32_t>(recorded_channels_)) {
      throw InternalError(fmt::format("{}: event at {} us on channel {} of {} reached the binning", source,
                                      event.time_us, event.channel, recorded_channels_));
    }
    duration = std::max(duration, event.time_us);
    const std::int64_t step = event.time_us / binning_.step_us;
    if (step < binning_.steps)
      spikes.push_back({static_cast<std::uint32_t>(step), bin == 1 ? event.channel : event.channel / bin});
  }
  report_.events += events.size();
  report_.dropped_late += events.size() - spikes.size();

  std::vector<Spike> by_id;
  std::vector<std::uint32_t> ends;
  sort_by(spikes, by_id, static_cast<std::size_t>(channels_), ends, [](const Spike& spike) { return spike.id; });
  sort_by(by_id, spikes, steps, ends, [](const Spike& spike) { return spike.step; });

  const std::size_t start = ids_.size();
  std::size_t next = 0;
  offsets_.push_back(0);
  for (std::size_t step = 0; step < steps; ++step) {
    for (const std::size_t first = next; next < ends[step]; ++next) {
      const bool repeated = next > first && spikes[next].id == spikes[next - 1].id;
      if (repeated && !binning_.counts) {
        ++report_.merged;
      } else {
        ids_.push_back(spikes[next].id);
      }
    }
    offsets_.push_back(static_cast<std::uint32_t>(ids_.size() - start));
  }
  report_.spikes += ids_.size() - start;
  starts_.push_back(ids_.size());
  labels_.push_back(label);
  speakers_.push_back(speaker);
  sources_.push_back(std::move(source));
  events_.push_back(events.size());
  durations_.push_back(duration);
}

int SpikeDataset::largest_label() const {
  return labels_.empty() ? -1 : *std::max_element(labels_.begin(), labels_.end());
}

std::span<const std::uint32_t> SpikeDataset::offsets(std::size_t sample) const {
  const std::size_t row = static_cast<std::size_t>(binning_.steps) + 1;
  return std::span(offsets_).subspan(sample * row, row);
}

std::span<const std::uint32_t> SpikeDataset::ids(std::size_t sample) const {
  return std::span(ids_).subspan(starts_[sample], starts_[sample + 1] - starts_[sample]);
}

}  // namespace spikeloom
