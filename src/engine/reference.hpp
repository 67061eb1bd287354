// The whole training step once more, dense and plain, in float64 or float32: what the fast engine is checked against.
// Reads from top to bottom; keeps every (sample, step, neuron); shares nothing with the engine but the neuron models,
// the surrogates and the formulas of the losses.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include <spikeloom/network.hpp>
#include "data/spike_batch.hpp"
#include "engine/outgoing.hpp"
#include "engine/spike_lists.hpp"
#include "network/parameters.hpp"

namespace spikeloom {

/// Loss of one sample. Membrane readouts: `output` and `gradient` are (steps, classes). Spike counts: (classes), steps
/// = 1 row. Returns the loss and writes scale * its gradient.
template <class Number>
using ReferenceLoss =
    std::function<double(int sample, const Number* output, Number* gradient, int label, Number scale)>;

/// Decisions taken elsewhere, which the reference follows instead of its own comparisons: a membrane within rounding of
/// the threshold may rightly fall on either side in float32 and float64.
struct ForcedDecisions {
  SpikeLists spikes;
  SpikeLists active;
};

template <class Number>
struct ReferenceResult {
  double loss = 0.0;  // sum over samples
  double regulariser = 0.0;
  std::vector<std::vector<Number>> weight_gradient;            // per layer (size, inputs) of mean loss + regulariser
  std::vector<std::vector<Number>> recurrent_weight_gradient;  // (size, size), or empty
  std::vector<std::vector<Number>> bias_gradient;
  std::vector<std::map<NeuronParameter, std::vector<Number>>> neuron_gradient;  // of what the layer learns, (size)
  std::vector<std::uint64_t> spikes;                                            // per layer
  std::uint64_t differing_decisions = 0;  // where a forced decision is not the reference's own
  double farthest_difference = 0.0;  // the largest distance of such a membrane from the edge, in units of the threshold
};

/// `forced`: one per spiking layer, or empty. `window_low` as in Engine::set_window_low, `dropout` as in set_dropout,
/// `bptt_steps` as in Plan.
template <class Number>
ReferenceResult<Number> reference_step(const NetworkSpec& network, const Parameters& parameters,
                                       const SpikeBatch& batch, const ReferenceLoss<Number>& loss,
                                       const std::vector<ForcedDecisions>& forced, double window_low,
                                       const DropoutDraw& dropout = {}, int bptt_steps = 0);

}  // namespace spikeloom
