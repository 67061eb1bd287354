// Random changes of the training spikes, drawn anew in every epoch, so that a network cannot learn samples by heart.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <spikeloom/configuration.hpp>
#include <spikeloom/dataset.hpp>

#include "data/spike_batch.hpp"

namespace spikeloom {

/// gather_batch with the changes that an AugmentationSpec names. What a sample becomes is a function of (seed, epoch,
/// its number in the data set) alone, so neither threads nor batches nor a resume change it.
class Augmenter {
 public:
  /// Throws UserError if the channels of `data` are no whole images of the given width and height.
  Augmenter(const AugmentationSpec& spec, const SpikeDataset& data, std::uint64_t seed);

  void gather(std::span<const std::uint32_t> samples, std::uint64_t epoch, SpikeBatch& batch);

 private:
  struct Spike {
    std::uint32_t step;
    std::uint32_t id;
  };
  void change(std::uint32_t sample, std::uint64_t epoch);
  void append(SpikeBatch& batch);

  AugmentationSpec spec_;
  const SpikeDataset& data_;
  std::uint64_t seed_;
  std::vector<Spike> spikes_;  // of one sample
  std::vector<Spike> by_id_;
  std::vector<std::uint32_t> ends_;
};

}  // namespace spikeloom
