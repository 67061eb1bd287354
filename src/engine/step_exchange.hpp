// What the tiles of a recurrent layer tell each other from one step to the next: which of their neurons spiked, and,
// going back, each tile's part of dLoss/ds of the step's active neurons.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/aligned_buffer.hpp"
#include "engine/spike_lists.hpp"

namespace spikeloom {

/// `count` elements of a tile's row in an exchange, up to a whole number of cache lines, so that no two workers write
/// one line.
template <class T>
std::size_t whole_lines(std::size_t count) {
  constexpr std::size_t kPerLine = kCacheLine / sizeof(T);
  return (count + kPerLine - 1) / kPerLine * kPerLine;
}

/// The buffers of even and odd steps take turns, so that one barrier a step is enough.
class StepExchange {
 public:
  /// Room for the spikes of a forward pass.
  void reserve_spikes(int tiles, std::size_t samples) {
    spiked_stride_ = whole_lines<std::uint64_t>(samples);
    for (AlignedBuffer<std::uint64_t>& spiked : spiked_) spiked.reserve_discard(tiles * spiked_stride_);
  }
  /// Room for the parts of steps of at most so many active neurons in all samples.
  void reserve_partials(int tiles, std::size_t events) {
    partials_stride_ = whole_lines<float>(events);
    for (AlignedBuffer<float>& partials : partials_) partials.reserve_discard(tiles * partials_stride_);
  }

  /// (samples): the columns of a tile that spiked at a step.
  std::uint64_t* spiked(int tile, int step) { return spiked_[step % 2].data() + tile * spiked_stride_; }
  const std::uint64_t* spiked(int tile, int step) const { return spiked_[step % 2].data() + tile * spiked_stride_; }
  /// (events): a tile's part of the gradients of a step's active neurons.
  float* partials(int tile, int step) { return partials_[step % 2].data() + tile * partials_stride_; }
  const float* partials(int tile, int step) const { return partials_[step % 2].data() + tile * partials_stride_; }

 private:
  std::size_t spiked_stride_ = 0;
  std::size_t partials_stride_ = 0;
  AlignedBuffer<std::uint64_t> spiked_[2];  // (tiles, samples, filled up to a cache line)
  AlignedBuffer<float> partials_[2];        // (tiles, events, likewise)
};

/// The spikes of all tiles at a step, sample by sample: offsets (samples + 1) and ids.
void list_spikes(const StepExchange& exchange, int step, int tiles, int width, std::size_t samples, SpikeLists& out);

/// All tiles' parts of dLoss/ds of the active neurons of a step, of which there are `events` in all samples, added in
/// tile order. Every worker adds all of them for itself: some sixteen neighbours at a time, which are mostly in one
/// line with its own.
class AddedParts {
 public:
  void add(const StepExchange& exchange, int step, int tiles, std::size_t events);
  /// In the order of the step's list.
  const float* data() const { return sums_.data(); }

 private:
  std::vector<const float*> parts_;
  AlignedBuffer<float> sums_;
};

/// Where the neurons of a tile, the first of which is `first_neuron`, start in the list of a sample.
inline std::size_t first_event(const SpikeLists& lists, std::size_t sample, std::uint32_t first_neuron) {
  const auto ids = lists.ids.begin();
  return std::lower_bound(ids + lists.offsets[sample], ids + lists.offsets[sample + 1], first_neuron) - ids;
}

}  // namespace spikeloom
