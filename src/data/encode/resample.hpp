// Changes the sample rate of a recording.
#pragma once

#include <span>
#include <vector>

namespace spikeloom {

/// A polyphase filter from one sample rate to another: a sinc cut off at the lower Nyquist frequency under a Kaiser
/// window of ten zero crossings to each side (beta 5). Build once per pair of rates; use is const and thread-safe.
class Resampler {
 public:
  /// Rates in Hz, positive.
  Resampler(int from, int to);

  /// ceil(samples * to / from) samples; sample 0 stays at time 0, and beyond both ends the signal counts as zero.
  std::vector<float> operator()(std::span<const float> samples) const;

 private:
  int up_;
  int down_;
  int taps_;                    // per phase
  int lead_;                    // input samples of a phase's filter that lie after the one it is centred on
  std::vector<float> filters_;  // [phase][tap], the tap for the oldest input sample first
};

}  // namespace spikeloom
