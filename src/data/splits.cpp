// Which samples are held out: stratified by label, and the same on every machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>
#include "core/random.hpp"

namespace spikeloom {
namespace {

/// Samples of each label, ascending.
std::map<int, std::vector<std::uint32_t>> by_label(const SpikeDataset& data) {
  std::map<int, std::vector<std::uint32_t>> classes;
  for (std::size_t sample = 0; sample < data.size(); ++sample)
    classes[data.label(sample)].push_back(static_cast<std::uint32_t>(sample));
  return classes;
}

Split split_where(const SpikeDataset& data, const std::vector<bool>& held_out) {
  Split split;
  for (std::size_t sample = 0; sample < data.size(); ++sample) {
    (held_out[sample] ? split.held_out : split.train).push_back(static_cast<std::uint32_t>(sample));
  }
  return split;
}

}  // namespace

Split split_fraction(const SpikeDataset& data, double fraction, std::uint64_t seed) {
  if (!(fraction >= 0.0 && fraction < 1.0))
    throw UserError(fmt::format("fraction {} to hold out; allowed: 0 to below 1", fraction));
  std::vector<bool> held_out(data.size(), false);
  if (fraction == 0.0) return split_where(data, held_out);
  for (const auto& [label, samples] : by_label(data)) {
    const std::size_t count = samples.size();
    if (count < 2) continue;  // its only sample is for learning
    const auto wanted = static_cast<std::size_t>(std::floor(fraction * static_cast<double>(count) + 0.5));
    const std::size_t taken = std::clamp<std::size_t>(wanted, 1, count - 1);
    const std::vector<std::uint32_t> order =
        RandomStream(seed, "split", static_cast<std::uint64_t>(label)).permutation(count);
    for (std::size_t i = 0; i < taken; ++i) held_out[samples[order[i]]] = true;
  }
  return split_where(data, held_out);
}

Split split_fold(const SpikeDataset& data, int fold, int folds) {
  if (folds < 2) throw UserError(fmt::format("{} folds; allowed: at least 2", folds));
  if (fold < 1 || fold > folds) throw UserError(fmt::format("fold {} of {}; allowed: 1 to {}", fold, folds, folds));
  std::vector<bool> held_out(data.size(), false);
  // Dealt like cards, one class after the other without starting anew: folds differ by at most one sample, in each
  // class and in all.
  std::size_t dealt = 0;
  for (const auto& [label, samples] : by_label(data)) {
    for (const std::uint32_t place :
         RandomStream(0, "folds", static_cast<std::uint64_t>(label)).permutation(samples.size())) {
      held_out[samples[place]] = dealt++ % static_cast<std::size_t>(folds) == static_cast<std::size_t>(fold - 1);
    }
  }
  Split split = split_where(data, held_out);
  if (split.train.empty() || split.held_out.empty()) {
    throw UserError(
        fmt::format("fold {}/{} of {} samples leaves nothing on one side; use fewer folds", fold, folds, data.size()));
  }
  return split;
}

Split split_speakers(const SpikeDataset& data, std::span<const int> speakers) {
  std::vector<bool> held_out(data.size(), false);
  std::set<int> present;
  for (std::size_t sample = 0; sample < data.size(); ++sample) {
    present.insert(data.speaker(sample));
    held_out[sample] = std::find(speakers.begin(), speakers.end(), data.speaker(sample)) != speakers.end();
  }
  Split split = split_where(data, held_out);
  if (split.train.empty() || split.held_out.empty()) {
    throw UserError(fmt::format("holding out speakers {} leaves {} samples; the data's speakers are {} (-1: unknown)",
                                fmt::join(speakers, ", "), split.train.empty() ? "no other" : "none of these",
                                fmt::join(present, ", ")));
  }
  return split;
}

}  // namespace spikeloom
