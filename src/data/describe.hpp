// What a data set holds and what its binning does to it: the figures of `spikeloom data info`.
#pragma once

#include <cstdint>
#include <vector>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

struct DatasetDescription {
  std::uint64_t samples = 0;
  int classes = 0;           // largest label + 1
  int channels = 0;          // as recorded
  double duration_ms = 0.0;  // time of the last event of the longest recording
  double mean_duration_ms = 0.0;
  std::uint64_t events = 0;  // as recorded
  double events_per_sample = 0.0;
  std::uint64_t fewest_events = 0;
  std::uint64_t most_events = 0;
  std::uint64_t empty_samples = 0;
  std::uint64_t spikes = 0;          // after binning
  double activity = 0.0;             // spikes per channel (after channel_bin), step and sample
  std::uint64_t dropped_events = 0;  // at or beyond the last step
  std::uint64_t merged_events = 0;   // fell on a channel and step that had one already
  std::uint64_t cut_samples = 0;     // samples that lost events at the end
  std::vector<std::uint64_t> samples_per_class;
  std::vector<int> speakers;  // ascending; empty if unknown
};

DatasetDescription describe(const SpikeDataset& data);

}  // namespace spikeloom
