// What a training step will cost: predicted from sizes, activities and the machine's measured figures. Nothing here
// decides what is computed (mode_choice.hpp does, by a committed table): a run must repeat to the bit.
#pragma once

#include <vector>

#include <spikeloom/network.hpp>
#include "plan/figures.hpp"
#include "plan/machine.hpp"
#include "plan/plan.hpp"

namespace spikeloom {

/// What flows through a network: per layer, per neuron, step and sample.
struct Workload {
  int batch = 1;
  int steps = 1;
  double input_activity = 0.0;
  std::vector<double> activity;         // per layer: spikes; 0 for layers that do not spike
  std::vector<double> active_fraction;  // per layer: neurons in the surrogate's window
  bool clip = false;                    // gradients are kept, and the update is a pass of its own
  int moments = 2;                      // that the optimiser keeps per parameter

  double rows() const { return static_cast<double>(batch) * steps; }
  /// Spikes per neuron and step that reach layer l.
  double input_of(std::size_t l) const { return l == 0 ? input_activity : activity[l - 1]; }
};

/// What flows through it in a chunk where the plan cuts recordings into them: else the same.
Workload of_chunk(const Plan& plan, Workload recording);

/// Nanoseconds of a layer in one batch, by what is done; waiting for the busiest worker included.
struct LayerCost {
  double forward = 0.0;  // of a layer that does not spike: with the loss, and part of the backward phase
  double merge = 0.0;    // its spikes into one list
  double delta = 0.0;
  double input_gradient = 0.0;  // of the layer below
  double weight_gradient = 0.0;
  double lists =
      0.0;  // of the backward pass: sorting events, listing the active, handing gradients back; dense: copies
  double update = 0.0;
  bool forward_dense = false;
  bool backward_dense = false;

  double forward_phase() const { return forward + merge; }
  double backward_phase() const { return delta + input_gradient + weight_gradient + lists; }
};

struct Prediction {
  std::vector<LayerCost> layers;
  double forward_ns = 0.0;  // phases as `spikeloom bench train` reports them
  double backward_ns = 0.0;
  double update_ns = 0.0;
  double data_ns = 0.0;

  double total_ns() const { return forward_ns + backward_ns + update_ns + data_ns; }
};

/// The cost of one layer when it is computed from lists, or by matrix products.
LayerCost sparse_cost(const NetworkSpec& network, const Plan& plan, std::size_t layer, const Workload& work,
                      const Machine& machine, const MachineFigures& figures);
LayerCost dense_cost(const NetworkSpec& network, const Plan& plan, std::size_t layer, const Workload& work,
                     const Machine& machine, const MachineFigures& figures);

/// A whole training step in the plan's mode, all chunks of its recordings together.
Prediction predict(const NetworkSpec& network, const Plan& plan, const Workload& work, const Machine& machine,
                   const MachineFigures& figures);

/// The input activity from which products are predicted to be faster than lists for a layer, everything else that
/// reaches or leaves it scaled alike; 1 if lists win everywhere. Layers that do not spike are never dense.
double dense_from_activity(const NetworkSpec& network, const Plan& plan, std::size_t layer, const Workload& work,
                           const Machine& machine, const MachineFigures& figures);

/// The time that nothing could beat with these algorithms, nanoseconds of a batch on all workers: every row-add at the
/// L2 cache's bandwidth, `kLimitCyclesPerStep` for a tile, step and pass, and one pass of the update over weights and
/// moments. docs/performance.md says where it comes from.
double rough_limit_ns(const NetworkSpec& network, const Plan& plan, const Workload& work,
                      const MachineFigures& figures);
inline constexpr double kLimitCyclesPerStep = 35.0;

}  // namespace spikeloom
