// What a training step keeps in memory, by kind, from sizes and activities: the same accounts as the engine's own.
#pragma once

#include <cstdint>

#include <spikeloom/network.hpp>
#include "plan/cost.hpp"
#include "plan/plan.hpp"

namespace spikeloom {

struct MemoryUse {
  std::uint64_t weights = 0;    // with biases, padding of tiles and bf16 copies
  std::uint64_t optimiser = 0;  // moments
  std::uint64_t gradients = 0;  // kept beyond a tile's turn: readouts, with clipping or several groups all; of chunks
                                // of recordings all, and their sum
  std::uint64_t saved = 0;      // from the forward for the backward pass: spikes, active sets, the readout's membranes;
                                // of chunks those of one, what is carried, and the readout's of all
  std::uint64_t deltas = 0;     // of all workers
  std::uint64_t buffers = 0;    // partial sums, sorted events, the batch, a worker's lists

  std::uint64_t total() const { return weights + optimiser + gradients + saved + deltas + buffers; }
};

/// Samples whose partial input gradients of layer `l` are alive at once.
int group_size(const NetworkSpec& network, const Plan& plan, std::size_t l, const Workload& work);

/// Samples whose delta a worker holds at a time.
int range_size(const Plan& plan, const Workload& work);

/// For the sparse mode. The data set and the program itself are not in it.
MemoryUse memory_use(const NetworkSpec& network, const Plan& plan, const Workload& work);

}  // namespace spikeloom
