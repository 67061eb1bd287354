// Where a layer's spikes come from, and where dLoss/ds of them goes: the layer before, the data, or several of them
// (`inputs`). The lists of several are joined to one, in which the ids of each follow those of the one before; so the
// passes of a layer see one input, whose neurons are the rows of its weights. Gradients go back to each source, and a
// layer that sends to several gets their sum, the last layer's part first.
#pragma once

#include <span>
#include <vector>

#include "core/worker_team.hpp"
#include "engine/layer_state.hpp"

namespace spikeloom {

struct WorkerScratch;

class InputSources {
 public:
  /// One place that spikes come from: a layer, or null for the data, of so many neurons. `adds`: a layer further up has
  /// given its part of the gradient before. `inner`: a layer of the same loop (loop.hpp), which makes its gradient.
  /// `lag`: steps that its spikes take.
  struct Source {
    LayerState* layer = nullptr;
    int neurons = 0;
    bool adds = false;
    bool inner = false;
    int lag = 0;
  };
  /// Lists of one source, none where there are no offsets, and the steps that they take.
  struct Sent {
    SpikeRows rows;
    int lag = 0;
    /// What arrives in a row at this step of its sample.
    std::span<const std::uint32_t> arriving(std::size_t row, int step) const {
      if (!rows.offsets || step < lag) return {};
      const std::uint32_t* offsets = rows.offsets + row - lag;
      return {rows.ids + offsets[0], offsets[1] - offsets[0]};
    }
  };
  explicit InputSources(std::vector<Source> sources);

  /// The layers among the sources, which want a gradient; of a loop's layer, those outside of the loop.
  const std::vector<LayerState*>& layers() const { return layers_; }
  /// The layer whose lists are the input as they are, and that gets its gradient from here alone; null if there is
  /// none.
  LayerState* only() const;
  int neurons() const { return neurons_; }
  /// Of what is kept until the backward pass.
  std::size_t bytes() const { return joined() ? spikes_.bytes() : 0; }

  /// Forward, once the sources have sent their spikes: those of a loop's layers not yet, and then with them.
  void join_spikes(const SpikeRows& data, int samples, int steps, WorkerTeam& team) {
    join(data, false, samples, steps, team);
  }
  void join_with_loop(const SpikeRows& data, int samples, int steps, WorkerTeam& team) {
    if (inner_) join(data, true, samples, steps, team);
  }
  const SpikeRows& spikes() const { return view_; }

  /// Backward, once the active sets of layers() are listed: makes active().
  void join_active(int samples, int steps, WorkerTeam& team);
  /// The (sample, step, id) at which dLoss/ds is wanted; ids as in spikes().
  const SpikeLists& active() const { return joined() ? active_ : layers_.front()->sent_active(); }
  /// Makes room for it.
  void prepare_gradient();
  /// Takes it for the entries of one sample of active().
  void distribute(int sample, int steps, const float* gradient, WorkerScratch& scratch) const;

 private:
  static bool wants_gradient(const Source& source) { return source.layer && !source.inner; }
  static Sent active_of(const Source& source);
  bool joined() const { return sources_.size() > 1 || inner_ || lagging_; }
  void join(const SpikeRows& data, bool with_loop, int samples, int steps, WorkerTeam& team);

  std::vector<Source> sources_;
  std::vector<LayerState*> layers_;
  int neurons_ = 0;
  bool inner_ = false;    // a source is in the loop
  bool lagging_ = false;  // spikes of a source take a step
  SpikeRows view_;
  SpikeLists spikes_;
  SpikeLists active_;
};

}  // namespace spikeloom
