// Spikes of a batch of samples: compressed sparse rows over (sample, step).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

/// Row (sample, step) holds ids [offsets[row], offsets[row+1]), ascending, row = sample * steps + step.
struct SpikeBatch {
  int samples = 0;
  int steps = 0;
  int neurons = 0;
  std::vector<std::uint32_t> offsets{0};  // samples * steps + 1
  std::vector<std::uint32_t> ids;
  std::vector<int> labels;  // samples

  std::size_t rows() const { return static_cast<std::size_t>(samples) * steps; }
  std::size_t events() const { return ids.size(); }
  double activity() const;  // ids per neuron, step and sample
};

/// The named samples of `data`, in the order given. Storage of `batch` is reused.
void gather_batch(const SpikeDataset& data, std::span<const std::uint32_t> samples, SpikeBatch& batch);

/// `count` steps of every sample, from `first` on, with the labels. Storage of `out` is reused.
void slice_steps(const SpikeBatch& batch, int first, int count, SpikeBatch& out);

}  // namespace spikeloom
