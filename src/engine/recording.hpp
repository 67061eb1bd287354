// What Engine::record hands out of a layer whose forward pass is done, and membranes that no such pass keeps.
#pragma once

#include <vector>

#include "engine/passes.hpp"

namespace spikeloom {

/// A spiking layer's spikes in the batch whose spikes were its input.
SpikeBatch recorded_spikes(const LayerState& layer, const SpikeBatch& batch);

/// Membranes (samples, steps, size) of a spiking layer from traces that list every column.
std::vector<float> recorded_membranes(const LayerState& layer, const PassContext& context);

/// Membranes (samples, steps, size) of a layer that does not spike, from the spikes that reach it; with `input_current`
/// of any layer on spikes its k (W s + b) instead.
std::vector<float> forward_membranes(LayerState& layer, const SpikeRows& input, bool input_current,
                                     const PassContext& context);

/// Membranes (samples, steps, size) of a linear last layer. It has no memory: they are its input current, too. `input`
/// are the spikes that reach the leaky integrator below.
std::vector<float> linear_membranes(OutputStage& output_stage, const LayerState& layer, const SpikeRows& input,
                                    const PassContext& context);

}  // namespace spikeloom
