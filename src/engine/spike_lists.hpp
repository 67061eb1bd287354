// Lists of neuron ids per (sample, step), as layers exchange them, and the same events sorted by id, as weight
// gradients want them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/worker_team.hpp"

namespace spikeloom {

/// A view of compressed sparse rows over (sample, step): row r holds ids[offsets[r]] .. ids[offsets[r + 1]], ascending.
struct SpikeRows {
  const std::uint32_t* offsets = nullptr;
  const std::uint32_t* ids = nullptr;
  int neurons = 0;
  float value = 1.0f;  // what each spike counts: a pass computes with value * s
};

/// The storage behind it.
struct SpikeLists {
  std::vector<std::uint32_t> offsets;
  std::vector<std::uint32_t> ids;

  SpikeRows view(int neurons) const { return {offsets.data(), ids.data(), neurons}; }
  std::size_t bytes() const { return (offsets.size() + ids.size()) * sizeof(std::uint32_t); }
};

/// The ids of a row.
inline std::span<const std::uint32_t> row_of(const SpikeLists& lists, std::size_t row) {
  return std::span(lists.ids).subspan(lists.offsets[row], lists.offsets[row + 1] - lists.offsets[row]);
}

/// A range of samples of a batch.
struct SampleRange {
  int first = 0;
  int last = 0;  // one past
  int size() const { return last - first; }
};

/// A range of steps of a recording.
struct StepRange {
  int first = 0;
  int last = 0;  // one past
  int size() const { return last - first; }
};

/// Events of some samples sorted by id, then by row: the rows of id are event_rows[starts[id]] .. event_rows[starts[id
/// + 1]], counted from the range's first row.
struct TransposedEvents {
  SampleRange samples;
  std::vector<std::uint32_t> starts;
  std::vector<std::uint32_t> event_rows;
};

/// Sorts the events of `input` range by range, in parallel over the ranges. With `before`, which has a row for each
/// sample, an event counts one step later, and not at all at the last; those of `before` count at the first.
void transpose_events(const SpikeRows& input, int steps, std::span<const SampleRange> ranges, WorkerTeam& team,
                      std::vector<TransposedEvents>& out, const SpikeLists* before = nullptr);

/// [0, samples) in ranges of `size`.
std::vector<SampleRange> ranges_of(SampleRange samples, int size);

}  // namespace spikeloom
