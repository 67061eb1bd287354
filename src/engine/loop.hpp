// Layers that need each other's spikes from step to step: a recurrent layer, or several that feedback joins. They go
// through the steps together, within a step in the order of the network. A layer's spikes reach later layers of the
// loop in the same step, earlier ones and, if it is recurrent, itself one step later.
#pragma once

#include <vector>

#include <spikeloom/network.hpp>
#include "engine/layer_state.hpp"

namespace spikeloom {

/// What a layer of a loop receives from one of the loop's layers.
struct LoopLink {
  int source = 0;       // number of the sender in the loop
  int lag = 0;          // steps that its spikes take
  int first_input = 0;  // row of the receiver's weights at which the sender's neurons start
  bool own = false;     // a recurrent layer's spikes to itself, through its recurrent weights
  int exchange = 0;     // where parts of the sender's gradient are put down
};

/// The other end of a link.
struct LoopReceiver {
  int member = 0;
  int link = 0;  // of that member's links
};

struct InputColumns {
  int first = 0;
  int count = 0;
};

struct LoopMember {
  LayerState* layer = nullptr;
  std::vector<LoopLink> links;             // in the order of the weights' rows, its own spikes last
  std::vector<LoopReceiver> receivers;     // itself first, then in the order of the network
  std::vector<InputColumns> from_outside;  // inputs that are known before the loop runs

  int inner_links() const { return static_cast<int>(links.size()) - (layer->recurrent() ? 1 : 0); }
  float* weights_of(const LoopLink& link, int tile) const {
    return link.own ? layer->recurrent_weights(tile)
                    : layer->weights(tile) + static_cast<std::size_t>(link.first_input) * layer->width();
  }
};

class Loop {
 public:
  /// `layers` are those of the network; `part` is one of its connected parts.
  Loop(const NetworkSpec& network, const std::vector<int>& part, std::vector<LayerState>& layers);

  int size() const { return static_cast<int>(members_.size()); }
  const LoopMember& member(int number) const { return members_[number]; }
  const std::vector<LoopMember>& members() const { return members_; }
  LayerState& layer(int number) const { return *members_[number].layer; }
  /// The schedule of all of them.
  StepSchedule schedule() const { return members_.front().layer->step_schedule(); }
  /// Exchanges that it takes: one for each member, for its spikes and what it receives from itself, then one for each
  /// link between two.
  int exchanges() const { return exchanges_; }

 private:
  std::vector<LoopMember> members_;
  int exchanges_ = 0;
};

}  // namespace spikeloom
