// What of a layer's spikes reaches the next layer. A layer has two lists per (sample, step), of spikes and of active
// neurons, which are its own record. On the way to the next layer they may be changed:
//
//   spike_budget = S    a list holds at most S ids: spikes first, in ascending id, then neurons that are active but did
//                       not spike, likewise. What does not fit is dropped; a neuron whose spike is dropped is reset all
//                       the same.
//   dropout = p         in training a neuron is left out of a step's lists with probability p, and a spike that goes
//   out
//                       counts 1 / (1 - p); before the budget is applied
//   delay_steps = d     what is in the lists of step t arrives at step t + d, where d may differ from neuron to neuron;
//                       what would arrive after the last step is lost
//
// An active neuron that is dropped or lost gets no gradient from above. A layer without such a setting sends its own
// lists, and nothing here costs anything.
//
// A recording may come in chunks: then a spike may arrive in a later one, and its neuron gets no gradient for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <spikeloom/network.hpp>
#include "core/random.hpp"
#include "core/worker_team.hpp"
#include "engine/spike_lists.hpp"

namespace spikeloom {

/// What a budget let through, in one batch. A spike that is active, too, counts as a spike.
struct BudgetCounts {
  std::uint64_t spikes = 0;  // that asked for room
  std::uint64_t dropped_spikes = 0;
  std::uint64_t gradients =
      0;  // neurons that are active but did not spike, likewise; 0 where only the forward pass ran
  std::uint64_t dropped_gradients = 0;

  BudgetCounts& operator+=(const BudgetCounts& other);
};

/// What the dropout of a training batch is drawn from: it leaves out neuron j at step t of sample n if word
/// ((first_sample + n) T + t) N + j (T steps of the recording) of the stream "dropout/<layer>" of `seed`, repetition
/// `step`, is below p 2^32.
struct DropoutDraw {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;          // the number of the update
  std::uint64_t first_sample = 0;  // samples of the update's earlier batches
};

class Outgoing {
 public:
  explicit Outgoing(const LayerSpec& layer) : spec_(&layer) {}

  /// Steps per neuron, or none of them where the layer has no delays.
  void set_delays(const std::vector<float>& delays);
  const std::vector<float>& delays() const { return delays_; }

  /// Starts a batch of so many samples, or, past the first step, its next chunk: these steps of a recording;
  /// `dropout` is null in evaluation.
  void begin(int samples, StepRange steps, int recording_steps, const DropoutDraw* dropout);
  /// Whether the lists of this batch differ from the layer's own. Only then the rest may be used.
  bool changes() const { return changes_; }

  /// Whether dropout leaves neurons out in this batch, and whether it does so with this one: of the spikes as of the
  /// active neurons.
  bool drops() const { return dropout_.has_value(); }
  bool leaves_out(int sample, int step, std::uint32_t id) const {
    if (!dropout_) return false;
    const std::uint64_t row = (first_sample_ + sample) * recording_steps_ + first_step_ + step;
    return dropout_->bits_at(row * static_cast<std::uint64_t>(spec_->size) + id) < dropped_below_;
  }

  /// Makes spikes() from the layer's own.
  void send_spikes(const SpikeLists& own, WorkerTeam& team);
  /// Makes active() from the layer's own lists, after send_spikes.
  void send_active(const SpikeLists& own_spikes, const SpikeLists& own_active, WorkerTeam& team);
  const SpikeLists& spikes() const { return spikes_; }
  const SpikeLists& active() const { return active_; }
  /// What each of spikes() counts.
  float value() const { return value_; }

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
    std::vector<std::uint64_t> arrivals;  // scratch of a delay

    void clear();
    void add(std::uint32_t id, std::uint32_t source) { ids.push_back(id), sources.push_back(source); }
    void end_step() { ends.push_back(static_cast<std::uint32_t>(ids.size())); }
  };

  /// A spike on its way to a later chunk, and the step of that at which it arrives, counted from the next one's first.
  struct Arrival {
    std::size_t step;
    std::uint32_t id;
  };

  std::size_t room() const;
  void choose_spikes(int sample, const SpikeLists& own, SampleEntries& out) const;
  void choose_active(int sample, const SpikeLists& own_spikes, const SpikeLists& own_active, SampleEntries& out) const;
  /// With `under_way`, spikes: those of earlier chunks arrive, too, and those of this one may go on.
  void delay(SampleEntries& entries, std::vector<Arrival>* under_way) const;
  void join(WorkerTeam& team, SpikeLists& lists, std::vector<std::uint32_t>* sources);
  void count_budget();

  const LayerSpec* spec_;
  bool changes_ = false;
  int samples_ = 0;
  int steps_ = 0;
  int first_step_ = 0;
  int recording_steps_ = 0;
  std::optional<RandomStream> dropout_;  // none: nothing is left out
  std::uint64_t dropped_below_ = 0;
  std::uint64_t first_sample_ = 0;
  float value_ = 1.0F;
  std::vector<float> delays_;
  std::vector<std::vector<Arrival>> under_way_;  // per sample, if there is a delay
  SpikeLists kept_;                              // spikes before their delay, if there is one
  SpikeLists spikes_;
  SpikeLists active_;
  std::vector<std::uint32_t> sources_;  // of each entry of active_: its place in the layer's own active list
  std::vector<SampleEntries> entries_;  // per sample
  BudgetCounts budget_;
};

}  // namespace spikeloom
