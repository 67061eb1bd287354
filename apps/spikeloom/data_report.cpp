#include "data_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "output.hpp"

namespace spikeloom {

nlohmann::ordered_json to_json(const DatasetDescription& d) {
  return {{"samples", d.samples},
          {"classes", d.classes},
          {"channels", d.channels},
          {"duration_ms", d.duration_ms},
          {"mean_duration_ms", d.mean_duration_ms},
          {"events", d.events},
          {"events_per_sample", d.events_per_sample},
          {"fewest_events", d.fewest_events},
          {"most_events", d.most_events},
          {"empty_samples", d.empty_samples},
          {"activity", d.activity},
          {"spikes", d.spikes},
          {"dropped_events", d.dropped_events},
          {"merged_events", d.merged_events},
          {"cut_samples", d.cut_samples},
          {"samples_per_class", d.samples_per_class},
          {"speakers", d.speakers}};
}

void print(const DatasetDescription& d, const Binning& binning) {
  const double step_ms = static_cast<double>(binning.step_us) / 1000.0;
  const auto share = [&](std::uint64_t part) {
    return percent(d.events == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(d.events));
  };
  std::vector<std::pair<std::string, std::string>> rows{
      {"samples", fmt::format("{} ({} without any event)", d.samples, d.empty_samples)},
      {"classes", std::to_string(d.classes)},
      {"samples per class", fmt::format("{}", fmt::join(d.samples_per_class, " "))},
      {"channels", std::to_string(d.channels)},
      {"duration", fmt::format("{:.1f} ms on average, {:.1f} ms at most", d.mean_duration_ms, d.duration_ms)},
      {"events",
       fmt::format("{}, {:.1f} per sample ({} to {})", d.events, d.events_per_sample, d.fewest_events, d.most_events)}};
  if (!d.speakers.empty()) rows.emplace_back("speakers", fmt::format("{}", fmt::join(d.speakers, " ")));
  rows.emplace_back(fmt::format("in {} steps of {} ms", binning.steps, step_ms), "");
  rows.emplace_back("  activity", fmt::format("{:.5f} spikes per channel and step", d.activity));
  rows.emplace_back("  dropped, too late",
                    fmt::format("{} ({}) of {} samples", d.dropped_events, share(d.dropped_events), d.cut_samples));
  rows.emplace_back("  merged, same step", fmt::format("{} ({})", d.merged_events, share(d.merged_events)));
  print_table(rows);
}

}  // namespace spikeloom
