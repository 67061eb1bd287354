#include "engine/outgoing.hpp"

#include <algorithm>
#include <limits>

namespace spikeloom {
namespace {

/// The ids of one (sample, step).
std::span<const std::uint32_t> row_of(const SpikeLists& lists, std::size_t row) {
  return std::span(lists.ids).subspan(lists.offsets[row], lists.offsets[row + 1] - lists.offsets[row]);
}

/// Goes along an ascending list with ids that ascend, too: whether it holds them.
class Follower {
 public:
  explicit Follower(std::span<const std::uint32_t> ids) : ids_(ids) {}
  bool holds(std::uint32_t id) {
    while (at_ < ids_.size() && ids_[at_] < id) ++at_;
    return at_ < ids_.size() && ids_[at_] == id;
  }

 private:
  std::span<const std::uint32_t> ids_;
  std::size_t at_ = 0;
};

}  // namespace

void Outgoing::SampleEntries::clear() {
  ends.clear();
  ids.clear();
  sources.clear();
  budget = {};
}

void Outgoing::begin(int samples, int steps) {
  samples_ = samples;
  steps_ = steps;
  budget_ = {};
  changes_ = spec_->changes_outgoing();
}

void Outgoing::send_spikes(const SpikeLists& own, WorkerTeam& team) {
  entries_.resize(std::max(entries_.size(), static_cast<std::size_t>(samples_)));
  team.for_each(samples_, [&](std::size_t sample, int) {
    entries_[sample].clear();
    choose_spikes(static_cast<int>(sample), own, entries_[sample]);
  });
  count_budget();
  join(team, spikes_, nullptr);
}

void Outgoing::send_active(const SpikeLists& own_spikes, const SpikeLists& own_active, WorkerTeam& team) {
  team.for_each(samples_, [&](std::size_t sample, int) {
    entries_[sample].clear();
    choose_active(static_cast<int>(sample), own_spikes, own_active, entries_[sample]);
  });
  count_budget();
  join(team, active_, &sources_);
}

void Outgoing::choose_spikes(int sample, const SpikeLists& own, SampleEntries& out) const {
  const auto room = static_cast<std::size_t>(spec_->spike_budget);
  for (int step = 0; step < steps_; ++step) {
    const auto spikes = row_of(own, static_cast<std::size_t>(sample) * steps_ + step);
    const std::size_t kept = std::min(room, spikes.size());
    out.ids.insert(out.ids.end(), spikes.begin(), spikes.begin() + static_cast<std::ptrdiff_t>(kept));
    out.budget.spikes += spikes.size();
    out.budget.dropped_spikes += spikes.size() - kept;
    out.end_step();
  }
}

void Outgoing::choose_active(int sample, const SpikeLists& own_spikes, const SpikeLists& own_active,
                             SampleEntries& out) const {
  for (int step = 0; step < steps_; ++step) {
    const std::size_t row = static_cast<std::size_t>(sample) * steps_ + step;
    const auto sent = row_of(spikes_, row);
    Follower spiked(row_of(own_spikes, row)), kept(sent);
    std::size_t room = static_cast<std::size_t>(spec_->spike_budget) - sent.size();
    for (std::uint32_t e = own_active.offsets[row]; e < own_active.offsets[row + 1]; ++e) {
      const std::uint32_t id = own_active.ids[e];
      if (spiked.holds(id)) {
        if (kept.holds(id)) out.add(id, e);
        continue;
      }
      ++out.budget.gradients;
      if (room == 0) {
        ++out.budget.dropped_gradients;
        continue;
      }
      --room;
      out.add(id, e);
    }
    out.end_step();
  }
}

void Outgoing::count_budget() {
  for (int sample = 0; sample < samples_; ++sample) {
    const BudgetCounts& counts = entries_[sample].budget;
    budget_.spikes += counts.spikes;
    budget_.dropped_spikes += counts.dropped_spikes;
    budget_.gradients += counts.gradients;
    budget_.dropped_gradients += counts.dropped_gradients;
  }
}

void Outgoing::join(WorkerTeam& team, SpikeLists& lists, std::vector<std::uint32_t>* sources) {
  std::vector<std::uint32_t> base(samples_ + 1, 0);
  for (int sample = 0; sample < samples_; ++sample) base[sample + 1] = base[sample] + entries_[sample].ends.back();
  lists.offsets.resize(static_cast<std::size_t>(samples_) * steps_ + 1);
  lists.offsets.front() = 0;
  lists.ids.resize(base.back());
  if (sources) sources->resize(base.back());
  team.for_each(samples_, [&](std::size_t sample, int) {
    const SampleEntries& from = entries_[sample];
    for (int step = 0; step < steps_; ++step) lists.offsets[sample * steps_ + step + 1] = base[sample] + from.ends[step];
    std::copy(from.ids.begin(), from.ids.end(), lists.ids.begin() + base[sample]);
    if (sources) std::copy(from.sources.begin(), from.sources.end(), sources->begin() + base[sample]);
  });
}

void Outgoing::return_gradient(int sample, const SpikeLists& own_active, const float* sent, float* own) const {
  const std::size_t row = static_cast<std::size_t>(sample) * steps_;
  const std::uint32_t first = own_active.offsets[row];
  std::fill_n(own, own_active.offsets[row + steps_] - first, 0.0F);
  for (std::uint32_t e = active_.offsets[row]; e < active_.offsets[row + steps_]; ++e)
    own[sources_[e] - first] = *sent++;
}

std::size_t Outgoing::bytes() const {
  return changes_ ? spikes_.bytes() : 0;
}

}  // namespace spikeloom
