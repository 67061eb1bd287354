// One step of the delta recursion of many samples of a tile: what the backward pass of a recurrent layer advances by.
#include "kernels/kernels.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/backward_step.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

#include "network/models/lif.inl.hpp"

/// Writes h (dLoss/ds + rate gradient) of the active entries into rows that are 0 elsewhere, and the spikes as bits:
/// all samples before any vector is read, as in backward.cpp.
template <int kWidth, bool kThroughReset>
void scatter_entries(const TileConstants& c, const StepEntries& entries, const float* spike_gradient,
                     const float* rate_gradient, int samples, float* rows, std::ptrdiff_t stride,
                     std::uint64_t* spike_masks, float* jumps) {
  for (int sample = 0; sample < samples; ++sample) {
    float* row = rows + sample * stride;
    std::fill_n(row, kWidth, 0.0f);
    if constexpr (kThroughReset) std::fill_n(jumps + sample * kWidth, kWidth, 0.0f);
    std::uint64_t spiked = 0;
    const std::size_t end = entries.first[sample] + entries.counts[sample * entries.count_stride];
    for (std::size_t entry = entries.first[sample]; entry < end; ++entry) {
      const std::uint8_t code = entries.codes[entry];
      const int column = code & kColumnBits;
      spiked |= std::uint64_t{(code & kSpiked) != 0} << column;
      if (!(code & kActive)) continue;
      const float h = entries.derivatives[entry];
      row[column] = h * (*spike_gradient++ + rate_gradient[column]);
      if constexpr (kThroughReset) {
        // Lif::reset_jump of one neuron.
        jumps[sample * kWidth + column] = h * __builtin_fmaf(c.spiked_slope[column] - c.decay[column],
                                                             entries.membranes[entry], c.spiked_offset[column]);
      }
    }
    spike_masks[sample] = spiked;
  }
}

template <int kWidth, bool kThroughReset>
void step_of_samples(const TileConstants& c, const StepEntries& entries, const float* spike_gradient,
                     const float* rate_gradient, int samples, float* delta, float* rows, std::ptrdiff_t stride,
                     std::uint64_t* spike_masks, float* jumps) {
  constexpr int kVectors = kWidth / kLanes;
  scatter_entries<kWidth, kThroughReset>(c, entries, spike_gradient, rate_gradient, samples, rows, stride, spike_masks,
                                         jumps);
  for (int sample = 0; sample < samples; ++sample) {
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const int at = i * kLanes;
      const Lif::Constants<Lanes> constants{load(c.decay + at), load(c.gain + at), load(c.threshold + at),
                                            load(c.spiked_slope + at), load(c.spiked_offset + at)};
      float* row = rows + sample * stride + at;
      float* later = delta + sample * kWidth + at;
      const LaneMask spiked = mask_of(spike_masks[sample] >> at);
      Lanes now;
      if constexpr (kThroughReset) {
        now = Lif::adjoint_through_reset(constants, spiked, load(jumps + sample * kWidth + at), load(row), load(later));
      } else {
        now = Lif::adjoint(constants, spiked, load(row), load(later));
      }
      store(now, later);
      store(constants.gain * now, row);
    }
  }
}

void BackwardStep(int width, const TileConstants& c, const StepEntries& entries, const float* spike_gradient,
                  const float* rate_gradient, int samples, float* delta, float* rows, std::ptrdiff_t stride,
                  std::uint64_t* masks, float* jumps) {
  const auto run = [&](auto plain, auto through_reset) HWY_ATTR {
    (entries.membranes ? through_reset : plain)(c, entries, spike_gradient, rate_gradient, samples, delta, rows, stride,
                                                masks, jumps);
  };
  if (width == 64) return run(step_of_samples<64, false>, step_of_samples<64, true>);
  if (width == 32) return run(step_of_samples<32, false>, step_of_samples<32, true>);
  run(step_of_samples<16, false>, step_of_samples<16, true>);
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom::kernels {

HWY_EXPORT(BackwardStep);

void backward_step(int width, const TileConstants& constants, const StepEntries& entries, const float* spike_gradient,
                   const float* rate_gradient, int samples, float* delta, float* rows, std::ptrdiff_t stride,
                   std::uint64_t* spike_masks, float* jumps) {
  HWY_DYNAMIC_DISPATCH(BackwardStep)
  (width, constants, entries, spike_gradient, rate_gradient, samples, delta, rows, stride, spike_masks, jumps);
}

}  // namespace spikeloom::kernels
#endif
