// What a layer hands on from one chunk of a recording to the next where gradients are truncated: the states of its
// neurons and, in a recurrent layer, the spikes of the last step. In the backward pass both are constants. What neurons
// make of them, such as alpha u[t-1], is not: constants that are learned have a part in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/aligned_buffer.hpp"
#include "engine/spike_lists.hpp"

namespace spikeloom {

class CarriedState {
 public:
  /// Before the first chunk of a batch: all states are 0, and no neuron has spiked. `floats` are those of a sample in a
  /// tile, (states, width). Without tiles nothing is kept: for a batch of one chunk.
  void begin(int samples, int tiles, std::size_t floats, bool learns_constants);
  /// After a chunk of so many steps in which the layer spiked as in `own` (null: it is not recurrent).
  void go_on(const SpikeLists* own, int steps);

  /// What a sample's neurons in a tile hand on to the chunk's first step, and where goes what they hand on from its
  /// last; (states, width) each. Null in a batch of one chunk, which starts from 0.
  const float* before(int tile, int sample) const {
    return tiles_ > 0 ? before_.data() + place(tile, sample) : nullptr;
  }
  float* after(int tile, int sample) { return tiles_ > 0 ? after_.data() + place(tile, sample) : nullptr; }
  /// For constants that are learned: the states of a sample's neurons in a tile at the step before the chunk's first,
  /// (states, width), and which of them spiked, as bits; and where those of its last step go. Null as above.
  struct LastStep {
    const float* states = nullptr;
    std::uint64_t spiked = 0;
  };
  LastStep last_step(int tile, int sample) const;
  void keep_last_step(int tile, int sample, const float* states, std::uint64_t spiked);

  /// A row for each sample: the layer's spikes of the step before the chunk's first.
  const SpikeLists& spikes() const { return spikes_; }

  std::size_t bytes() const;

 private:
  std::size_t place(int tile, int sample) const { return (static_cast<std::size_t>(sample) * tiles_ + tile) * floats_; }

  int samples_ = 0;
  int tiles_ = 0;
  std::size_t floats_ = 0;
  AlignedBuffer<float> before_;             // (samples, tiles, states, width)
  AlignedBuffer<float> after_;              // likewise
  AlignedBuffer<float> last_states_;        // likewise, or empty
  std::vector<std::uint64_t> last_spiked_;  // (samples, tiles), or empty
  bool first_chunk_ = true;
  SpikeLists spikes_;
};

}  // namespace spikeloom
