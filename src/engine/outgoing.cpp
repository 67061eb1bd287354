#include "engine/outgoing.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

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

void Outgoing::set_delays(const std::vector<float>& delays) {
  if (spec_->delayed() && delays.size() != static_cast<std::size_t>(spec_->size))
    throw InternalError("the delays of layer " + spec_->name + " are missing or of another layer");
  delays_ = spec_->delayed() ? delays : std::vector<float>();
}

void Outgoing::begin(int samples, StepRange steps, int recording_steps, const DropoutDraw* dropout) {
  samples_ = samples;
  steps_ = steps.size();
  first_step_ = steps.first;
  recording_steps_ = recording_steps;
  if (first_step_ == 0) under_way_.assign(delays_.empty() ? 0 : samples, {});
  budget_ = {};
  dropout_.reset();
  value_ = 1.0F;
  if (dropout && spec_->dropout > 0.0) {
    dropout_.emplace(dropout->seed, "dropout/" + spec_->name, dropout->step);
    first_sample_ = dropout->first_sample;
    dropped_below_ = static_cast<std::uint64_t>(std::ceil(spec_->dropout * 0x1p32));
    value_ = static_cast<float>(1.0 / (1.0 - spec_->dropout));
  }
  changes_ = spec_->spike_budget > 0 || dropout_ || spec_->delayed();
}

std::size_t Outgoing::room() const {
  return spec_->spike_budget > 0 ? static_cast<std::size_t>(spec_->spike_budget)
                                 : static_cast<std::size_t>(spec_->size);
}

void Outgoing::send_spikes(const SpikeLists& own, WorkerTeam& team) {
  entries_.resize(std::max(entries_.size(), static_cast<std::size_t>(samples_)));
  team.for_each(samples_, [&](std::size_t sample, int) {
    entries_[sample].clear();
    choose_spikes(static_cast<int>(sample), own, entries_[sample]);
  });
  count_budget();
  if (delays_.empty()) return join(team, spikes_, nullptr);
  join(team, kept_, nullptr);
  team.for_each(samples_, [&](std::size_t sample, int) { delay(entries_[sample], &under_way_[sample]); });
  join(team, spikes_, nullptr);
}

void Outgoing::send_active(const SpikeLists& own_spikes, const SpikeLists& own_active, WorkerTeam& team) {
  team.for_each(samples_, [&](std::size_t sample, int) {
    entries_[sample].clear();
    choose_active(static_cast<int>(sample), own_spikes, own_active, entries_[sample]);
    if (!delays_.empty()) delay(entries_[sample], nullptr);
  });
  count_budget();
  join(team, active_, &sources_);
}

void Outgoing::choose_spikes(int sample, const SpikeLists& own, SampleEntries& out) const {
  for (int step = 0; step < steps_; ++step) {
    std::size_t left = room();
    for (const std::uint32_t id : row_of(own, static_cast<std::size_t>(sample) * steps_ + step)) {
      if (leaves_out(sample, step, id)) continue;
      ++out.budget.spikes;
      if (left == 0) {
        ++out.budget.dropped_spikes;
        continue;
      }
      --left;
      out.add(id, 0);
    }
    out.end_step();
  }
}

void Outgoing::choose_active(int sample, const SpikeLists& own_spikes, const SpikeLists& own_active,
                             SampleEntries& out) const {
  for (int step = 0; step < steps_; ++step) {
    const std::size_t row = static_cast<std::size_t>(sample) * steps_ + step;
    const auto kept_spikes = row_of(delays_.empty() ? spikes_ : kept_, row);
    Follower spiked(row_of(own_spikes, row)), kept(kept_spikes);
    std::size_t left = room() - kept_spikes.size();
    for (std::uint32_t e = own_active.offsets[row]; e < own_active.offsets[row + 1]; ++e) {
      const std::uint32_t id = own_active.ids[e];
      if (spiked.holds(id)) {
        if (kept.holds(id)) out.add(id, e);
        continue;
      }
      if (leaves_out(sample, step, id)) continue;
      ++out.budget.gradients;
      if (left == 0) {
        ++out.budget.dropped_gradients;
        continue;
      }
      --left;
      out.add(id, e);
    }
    out.end_step();
  }
}

void Outgoing::delay(SampleEntries& entries, std::vector<Arrival>* under_way) const {
  const auto steps = static_cast<std::size_t>(steps_), left = static_cast<std::size_t>(recording_steps_ - first_step_);
  // places[t + 1] counts what arrives at step t, then becomes the place of its next entry, and ends as that of step t
  // + 1.
  std::vector<std::uint32_t> places(steps + 1, 0);
  const std::span<const Arrival> arriving =
      under_way ? std::span<const Arrival>(*under_way) : std::span<const Arrival>();
  const auto for_each_arrival = [&](auto visit) {
    for (const Arrival& arrival : arriving) visit(arrival.id, 0U, arrival.step);
    std::size_t entry = 0;
    for (std::size_t step = 0; step < steps; ++step) {
      for (; entry < entries.ends[step]; ++entry)
        visit(entries.ids[entry], entries.sources[entry], step + static_cast<std::size_t>(delays_[entries.ids[entry]]));
    }
  };
  for_each_arrival([&](std::uint32_t, std::uint32_t, std::size_t at) {
    if (at < steps) ++places[at + 1];
  });
  std::uint32_t place = 0;
  for (std::size_t step = 1; step <= steps; ++step) place += std::exchange(places[step], place);
  entries.arrivals.resize(place);
  std::vector<Arrival> later;
  for_each_arrival([&](std::uint32_t id, std::uint32_t source, std::size_t at) {
    if (at < steps) {
      entries.arrivals[places[at + 1]++] = std::uint64_t{id} << 32 | source;
    } else if (under_way && at < left) {
      later.push_back({at - steps, id});
    }
  });
  if (under_way) *under_way = std::move(later);
  for (std::size_t step = 0; step < steps; ++step) {
    // A neuron arrives at most once in a step: ids differ, and their order is the whole order.
    std::sort(entries.arrivals.begin() + places[step], entries.arrivals.begin() + places[step + 1]);
    entries.ends[step] = places[step + 1];
  }
  entries.ids.resize(place);
  entries.sources.resize(place);
  for (std::size_t i = 0; i < place; ++i) {
    entries.ids[i] = static_cast<std::uint32_t>(entries.arrivals[i] >> 32);
    entries.sources[i] = static_cast<std::uint32_t>(entries.arrivals[i]);
  }
}

BudgetCounts& BudgetCounts::operator+=(const BudgetCounts& other) {
  spikes += other.spikes;
  dropped_spikes += other.dropped_spikes;
  gradients += other.gradients;
  dropped_gradients += other.dropped_gradients;
  return *this;
}

void Outgoing::count_budget() {
  for (int sample = 0; sample < samples_; ++sample) budget_ += entries_[sample].budget;
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
    for (int step = 0; step < steps_; ++step)
      lists.offsets[sample * steps_ + step + 1] = base[sample] + from.ends[step];
    std::copy(from.ids.begin(), from.ids.end(), lists.ids.begin() + base[sample]);
    if (sources) std::copy(from.sources.begin(), from.sources.end(), sources->begin() + base[sample]);
  });
}

void Outgoing::return_gradient(int sample, const SpikeLists& own_active, const float* sent, float* own) const {
  const std::size_t row = static_cast<std::size_t>(sample) * steps_;
  const std::uint32_t first = own_active.offsets[row];
  std::fill_n(own, own_active.offsets[row + steps_] - first, 0.0F);
  for (std::uint32_t e = active_.offsets[row]; e < active_.offsets[row + steps_]; ++e)
    own[sources_[e] - first] = value_ * *sent++;
}

std::size_t Outgoing::bytes() const { return changes_ ? spikes_.bytes() : 0; }

}  // namespace spikeloom
