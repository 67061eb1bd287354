#include "engine/spike_lists.hpp"

#include <algorithm>
#include <utility>

namespace spikeloom {
namespace {

/// Counting sort by id. Rows are visited in ascending order, so they stay so within an id.
void transpose_range(const SpikeRows& input, int steps, TransposedEvents& out) {
  const std::size_t first_row = static_cast<std::size_t>(out.samples.first) * steps;
  const std::size_t rows = static_cast<std::size_t>(out.samples.size()) * steps;
  const std::uint32_t* offsets = input.offsets + first_row;
  const std::uint32_t begin = offsets[0], end = offsets[rows];
  out.starts.assign(static_cast<std::size_t>(input.neurons) + 1, 0);
  out.event_rows.resize(end - begin);
  // starts[id + 1] counts, then becomes the place of the id's next event, and ends as the place where id + 1 starts.
  for (std::uint32_t e = begin; e < end; ++e) ++out.starts[input.ids[e] + 1];
  std::uint32_t place = 0;
  for (std::size_t id = 1; id < out.starts.size(); ++id) place += std::exchange(out.starts[id], place);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::uint32_t e = offsets[row]; e < offsets[row + 1]; ++e) {
      out.event_rows[out.starts[input.ids[e] + 1]++] = static_cast<std::uint32_t>(row);
    }
  }
}

}  // namespace

void transpose_events(const SpikeRows& input, int steps, std::span<const SampleRange> ranges, WorkerTeam& team,
                      std::vector<TransposedEvents>& out) {
  out.resize(ranges.size());
  team.for_each(ranges.size(), [&](std::size_t i, int) {
    out[i].samples = ranges[i];
    transpose_range(input, steps, out[i]);
  });
}

std::vector<SampleRange> ranges_of(SampleRange samples, int size) {
  std::vector<SampleRange> ranges;
  for (int first = samples.first; first < samples.last; first += size)
    ranges.push_back({first, std::min(first + size, samples.last)});
  return ranges;
}

}  // namespace spikeloom
