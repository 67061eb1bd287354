// Random changes of the training spikes, drawn anew in every epoch, so that a network cannot learn samples by heart.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <spikeloom/configuration.hpp>
#include <spikeloom/dataset.hpp>

#include "core/aligned_buffer.hpp"
#include "core/random.hpp"
#include "core/worker_team.hpp"
#include "data/spike_batch.hpp"

namespace spikeloom {

/// gather_batch with the changes that an AugmentationSpec names. What a sample becomes is a function of (seed, epoch,
/// its number in the data set, the partners) alone, so neither threads nor batches nor a resume change it.
class Augmenter {
 public:
  /// Samples are merged with others of `partners`. Throws UserError if the channels of `data` are no whole images of
  /// the given width and height.
  Augmenter(const AugmentationSpec& spec, const SpikeDataset& data, std::uint64_t seed,
            std::span<const std::uint32_t> partners);

  /// The workers of `team` share the samples.
  void gather(std::span<const std::uint32_t> samples, std::uint64_t epoch, WorkerTeam& team, SpikeBatch& batch);

 private:
  struct Spike {
    std::uint32_t step;
    std::uint32_t id;
  };
  /// One sample after its changes: ends[t] is the end of step t's ids.
  struct Changed {
    std::vector<std::uint32_t> ends;
    std::vector<std::uint32_t> ids;
  };
  struct alignas(kCacheLine) Scratch {
    std::vector<Spike> spikes;
    std::vector<Spike> by_id;
    std::vector<std::uint32_t> ends;
    std::vector<std::int32_t> moved;  // per channel
    std::vector<double> dropped;      // per event: a draw below the probability of its loss drops it
  };
  /// Whose events are added to those of `sample`, if any are.
  std::optional<std::uint32_t> partner_of(std::uint32_t sample, const RandomStream& random) const;
  void change(std::uint32_t sample, std::uint64_t epoch, Scratch& scratch) const;
  void sort(Scratch& scratch) const;
  void list(const std::vector<Spike>& spikes, Changed& out) const;

  AugmentationSpec spec_;
  const SpikeDataset& data_;
  std::uint64_t seed_;
  std::vector<std::vector<std::uint32_t>> of_class_;  // samples that others of their class may be merged with
  bool keeps_order_;                                  // of the spikes of a sample, by step and id
  std::vector<Scratch> scratch_;                      // one per worker
  std::vector<Changed> changed_;                      // one per sample of the batch
};

}  // namespace spikeloom
