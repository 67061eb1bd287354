// The inner loops of the inner ear: 32 neighbouring channels of one utterance at a time, several of them in the lanes
// of a vector.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/aligned_buffer.hpp"

namespace spikeloom {

inline constexpr int kEarGroup = 32;            // channels that share a decimation and a table
inline constexpr int kEarPair = kEarGroup / 2;  // distance of two channels that share a complex number
inline constexpr int kEarRate = 24'000;         // Hz, rate of hair cells, fibres and bushy cells
inline constexpr int kEarTaps = 8;              // of the interpolation after decimation
inline constexpr int kEarChannelBits = 10;      // low bits of a packed event; the step is above them

/// Membrane velocity per unit of stimulus for the channels of a group, at frequencies b * spacing_hz.
struct EarTable {
  int decimation = 1;  // the membrane's motion is computed at kEarRate / decimation
  int bins = 0;
  float spacing_hz = 0.0F;
  AlignedBuffer<float> values;  // [bin][real, imaginary][kEarGroup]
};

/// An inverse Fourier transform of a fixed length over rows, by decimation in frequency in place.
struct EarTransform {
  struct Pass {
    int radix;
    int length;            // of the blocks that this pass splits
    std::size_t twiddles;  // offset into `twiddles`: (length / radix) x (radix - 1) complex numbers
  };
  explicit EarTransform(int length);

  int length;
  std::vector<Pass> passes;
  std::vector<float> twiddles;
  std::vector<std::uint32_t> row_of;  // where the sample of each time lies afterwards
};

struct EarJob {
  const float* spectrum =
      nullptr;  // complex, of the stimulus; bin k is at k * hz_per_bin, scaled by 1 / (2 * full length)
  int spectrum_bins = 0;
  float hz_per_bin = 0.0F;
  const EarTable* table = nullptr;
  const EarTransform* transform = nullptr;  // of full length / decimation
  const float* interpolation = nullptr;     // [decimation][kEarTaps]
  int steps = 0;                            // at kEarRate
  int first_channel = 0;
  std::array<std::uint32_t, 2> key{};  // of the utterance's random numbers
  float* rows = nullptr;               // room for transform->length * kEarGroup floats
  std::uint32_t* events = nullptr;     // room for ear_event_bound(steps)
};

/// The most events that a group can emit: every bushy cell as often as its refractory period allows.
std::size_t ear_event_bound(int steps);

/// Runs membrane, hair cells, fibres and bushy cells of a group and writes its events, packed as step <<
/// kEarChannelBits | channel, in no particular order. Returns how many. The same bits on every instruction set: what
/// meets in an operation does not depend on the vectors' width, and nothing is contracted.
std::size_t run_ear_group(const EarJob& job);

/// What the fibres of a channel draw: kEarDraws standard exponential numbers, -ln of the bits of kEarDrawBlocks Philox
/// blocks from `first_block` on.
inline constexpr std::size_t kEarDrawBlocks = 16;
inline constexpr std::size_t kEarDraws = 4 * kEarDrawBlocks;
void draw_ear_exponentials(std::array<std::uint32_t, 2> key, std::uint32_t channel, std::uint32_t first_block,
                           float* to);

}  // namespace spikeloom
