// What of a layer's spikes reaches the next layer. A layer has two lists per (sample, step), of spikes and of active
// neurons, which are its own record. On the way to the next layer they may be changed:
//
//   spike_budget = S    a list holds at most S ids: spikes first, in ascending id, then neurons that are active but did
//                       not spike, likewise. What does not fit is dropped; a neuron whose spike is dropped is reset all
//                       the same.
//
// An active neuron that is dropped gets no gradient from above. A layer without such a setting sends its own lists, and
// nothing here costs anything.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <spikeloom/network.hpp>
#include "core/worker_team.hpp"
#include "engine/spike_lists.hpp"

namespace spikeloom {

/// What a budget let through, in one batch. A spike that is active, too, counts as a spike.
struct BudgetCounts {
  std::uint64_t spikes = 0;  // that asked for room
  std::uint64_t dropped_spikes = 0;
  std::uint64_t gradients = 0;  // neurons that are active but did not spike, likewise; 0 where only the forward pass ran
  std::uint64_t dropped_gradients = 0;
};

class Outgoing {
 public:
  explicit Outgoing(const LayerSpec& layer) : spec_(&layer) {}

  /// Starts a batch of so many samples and steps.
  void begin(int samples, int steps);
  /// Whether the lists of this batch differ from the layer's own. Only then the rest may be used.
  bool changes() const { return changes_; }

  /// Makes spikes() from the layer's own.
  void send_spikes(const SpikeLists& own, WorkerTeam& team);
  /// Makes active() from the layer's own lists, after send_spikes.
  void send_active(const SpikeLists& own_spikes, const SpikeLists& own_active, WorkerTeam& team);
  const SpikeLists& spikes() const { return spikes_; }
  const SpikeLists& active() const { return active_; }

  /// From dLoss/ds of a sample's entries of active() to that of the layer's own active entries of the sample.
  void return_gradient(int sample, const SpikeLists& own_active, const float* sent, float* own) const;

  const BudgetCounts& budget() const { return budget_; }
  std::size_t bytes() const;

 private:
  /// The entries of one sample in the making, step after step.
  struct SampleEntries {
    std::vector<std::uint32_t> ends;  // of each step, counted from the sample's first entry
    std::vector<std::uint32_t> ids;
    std::vector<std::uint32_t> sources;
    BudgetCounts budget;

    void clear();
    void add(std::uint32_t id, std::uint32_t source) { ids.push_back(id), sources.push_back(source); }
    void end_step() { ends.push_back(static_cast<std::uint32_t>(ids.size())); }
  };

  void choose_spikes(int sample, const SpikeLists& own, SampleEntries& out) const;
  void choose_active(int sample, const SpikeLists& own_spikes, const SpikeLists& own_active, SampleEntries& out) const;
  void join(WorkerTeam& team, SpikeLists& lists, std::vector<std::uint32_t>* sources);
  void count_budget();

  const LayerSpec* spec_;
  bool changes_ = false;
  int samples_ = 0;
  int steps_ = 0;
  SpikeLists spikes_;
  SpikeLists active_;
  std::vector<std::uint32_t> sources_;  // of each entry of active_: its place in the layer's own active list
  std::vector<SampleEntries> entries_;  // per sample
  BudgetCounts budget_;
};

}  // namespace spikeloom
