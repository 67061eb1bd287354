#include "engine/spike_lists.hpp"

#include <algorithm>
#include <utility>

namespace spikeloom {
namespace {

/// Counting sort by id. Rows are visited in ascending order, so they stay so within an id.
void transpose_range(const SpikeRows& input, int steps, const SpikeLists* before, TransposedEvents& out) {
  const std::size_t samples = out.samples.size();
  const int later = before ? 1 : 0;
  const auto events_of = [&](std::size_t sample) { return input.offsets + (out.samples.first + sample) * steps; };
  const auto carried_by = [&](std::size_t sample) {
    return before ? row_of(*before, out.samples.first + sample) : std::span<const std::uint32_t>();
  };
  out.starts.assign(static_cast<std::size_t>(input.neurons) + 1, 0);
  // starts[id + 1] counts, then becomes the place of the id's next event, and ends as the place where id + 1 starts.
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const std::uint32_t* offsets = events_of(sample);
    for (std::uint32_t e = offsets[0]; e < offsets[steps - later]; ++e) ++out.starts[input.ids[e] + 1];
    for (const std::uint32_t id : carried_by(sample)) ++out.starts[id + 1];
  }
  std::uint32_t place = 0;
  for (std::size_t id = 1; id < out.starts.size(); ++id) place += std::exchange(out.starts[id], place);
  out.event_rows.resize(place);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const std::uint32_t* offsets = events_of(sample);
    const auto first_row = static_cast<std::uint32_t>(sample * steps);
    for (const std::uint32_t id : carried_by(sample)) out.event_rows[out.starts[id + 1]++] = first_row;
    for (int step = 0; step < steps - later; ++step) {
      const std::uint32_t row = first_row + static_cast<std::uint32_t>(step + later);
      for (std::uint32_t e = offsets[step]; e < offsets[step + 1]; ++e)
        out.event_rows[out.starts[input.ids[e] + 1]++] = row;
    }
  }
}

}  // namespace

void transpose_events(const SpikeRows& input, int steps, std::span<const SampleRange> ranges, WorkerTeam& team,
                      std::vector<TransposedEvents>& out, const SpikeLists* before) {
  out.resize(ranges.size());
  team.for_each(ranges.size(), [&](std::size_t i, int) {
    out[i].samples = ranges[i];
    transpose_range(input, steps, before, out[i]);
  });
}

std::vector<SampleRange> ranges_of(SampleRange samples, int size) {
  std::vector<SampleRange> ranges;
  for (int first = samples.first; first < samples.last; first += size)
    ranges.push_back({first, std::min(first + size, samples.last)});
  return ranges;
}

}  // namespace spikeloom
