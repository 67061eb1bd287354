// What the tiles of a recurrent layer tell each other from one step to the next: which of their neurons spiked, and,
// going back, each tile's part of dLoss/ds of the step's active neurons.
#pragma once

#include <algorithm>
#include <cstdint>

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

/// dLoss/ds of a tile's `count` active neurons in a sample, whose ids are in the step's lists: what comes from above,
/// and all tiles' parts, which are added in tile order first. Returns where the next go.
inline float* gather_gradients(const StepExchange& exchange, int step, int tiles, const SpikeLists& active,
                               std::size_t sample, std::uint32_t first_neuron, const float* from_above,
                               std::size_t count, float* gradient) {
  const auto ids = active.ids.begin();
  const std::size_t event =
      std::lower_bound(ids + active.offsets[sample], ids + active.offsets[sample + 1], first_neuron) - ids;
  for (std::size_t a = 0; a < count; ++a) {
    float sum = exchange.partials(0, step)[event + a];
    for (int tile = 1; tile < tiles; ++tile) sum += exchange.partials(tile, step)[event + a];
    *gradient++ = from_above[a] + sum;
  }
  return gradient;
}

}  // namespace spikeloom
