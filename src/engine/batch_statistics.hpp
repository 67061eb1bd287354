// What a batch came to: counted chunk by chunk, and sample by sample.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/engine.hpp"
#include "engine/layer_state.hpp"

namespace spikeloom {

/// Adds what a spiking layer's forward pass listed. Returns the bytes that it keeps.
std::uint64_t count_spikes(const LayerState& layer, LayerStatistics& statistics);

/// The means over `rows` (sample, step) and neurons, when all is added.
void set_means(std::size_t rows, int neurons, LayerStatistics& statistics);

/// Adds up losses and decisions.
void count_decisions(const std::vector<SampleResult>& samples, const std::vector<int>& labels, BatchResult& result);

}  // namespace spikeloom
