#include "data/describe.hpp"

#include <algorithm>
#include <set>

namespace spikeloom {

DatasetDescription describe(const SpikeDataset& data) {
  DatasetDescription result;
  const BinningReport& report = data.report();
  result.samples = data.size();
  result.classes = data.largest_label() + 1;
  result.channels = data.recorded_channels();
  result.events = report.events;
  result.spikes = report.spikes;
  result.dropped_events = report.dropped_late;
  result.merged_events = report.merged;
  result.samples_per_class.assign(static_cast<std::size_t>(result.classes), 0);
  if (data.size() == 0) return result;

  const std::int64_t end_us = data.binning().step_us * data.steps();
  std::set<int> speakers;
  std::int64_t longest = 0;
  double total_us = 0.0;
  result.fewest_events = data.events(0);
  for (std::size_t sample = 0; sample < data.size(); ++sample) {
    const std::uint64_t events = data.events(sample);
    result.fewest_events = std::min(result.fewest_events, events);
    result.most_events = std::max(result.most_events, events);
    result.empty_samples += events == 0 ? 1 : 0;
    result.cut_samples += events > 0 && data.duration_us(sample) >= end_us ? 1 : 0;
    longest = std::max(longest, data.duration_us(sample));
    total_us += static_cast<double>(data.duration_us(sample));
    ++result.samples_per_class[static_cast<std::size_t>(data.label(sample))];
    if (data.speaker(sample) >= 0) speakers.insert(data.speaker(sample));
  }
  const auto samples = static_cast<double>(data.size());
  result.duration_ms = static_cast<double>(longest) * 1e-3;
  result.mean_duration_ms = total_us * 1e-3 / samples;
  result.events_per_sample = static_cast<double>(report.events) / samples;
  result.activity = static_cast<double>(report.spikes) / (samples * data.steps() * data.channels());
  result.speakers.assign(speakers.begin(), speakers.end());
  return result;
}

}  // namespace spikeloom
