// Where a layer's spikes come from, and where dLoss/ds of them goes: the layer before, the data, or several of them
// (`inputs`). The lists of several are joined to one, in which the ids of each follow those of the one before; so the
// passes of a layer see one input, whose neurons are the rows of its weights. Gradients go back to each source, and a
// layer that sends to several gets their sum, the last layer's part first.
#pragma once

#include <vector>

#include "core/worker_team.hpp"
#include "engine/layer_state.hpp"

namespace spikeloom {

struct WorkerScratch;

class InputSources {
 public:
  /// One place that spikes come from: a layer, or null for the data, of so many neurons. `adds`: a layer further up has
  /// given its part of the gradient before.
  struct Source {
    LayerState* layer = nullptr;
    int neurons = 0;
    bool adds = false;
  };
  explicit InputSources(std::vector<Source> sources);

  /// The layers among the sources, which want a gradient.
  const std::vector<LayerState*>& layers() const { return layers_; }
  /// The layer whose lists are the input as they are, and that gets its gradient from here alone; null if there is
  /// none.
  LayerState* only() const;
  int neurons() const { return neurons_; }
  /// Of what is kept until the backward pass.
  std::size_t bytes() const { return joined() ? spikes_.bytes() : 0; }

  /// Forward, once the sources have sent their spikes.
  void join_spikes(const SpikeRows& data, int samples, int steps, WorkerTeam& team);
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
  bool joined() const { return sources_.size() > 1; }

  std::vector<Source> sources_;
  std::vector<LayerState*> layers_;
  int neurons_ = 0;
  SpikeRows view_;
  SpikeLists spikes_;
  SpikeLists active_;
};

}  // namespace spikeloom
