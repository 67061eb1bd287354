#include "data/encode/conditioning.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

constexpr double kLongestSilenceMs = 1000.0;
constexpr double kHighestEmphasisHz = 4000.0;

}  // namespace

void check(const Conditioning& conditioning) {
  const auto within = [](double value, double highest) { return value >= 0.0 && value <= highest; };
  if (!within(conditioning.silence_ms, kLongestSilenceMs))
    throw UserError(fmt::format("silence of {} ms: must be 0 .. {} ms", conditioning.silence_ms, kLongestSilenceMs));
  if (!within(conditioning.pre_emphasis_hz, kHighestEmphasisHz))
    throw UserError(fmt::format("pre-emphasis from {} Hz: must be 0 (off) .. {} Hz", conditioning.pre_emphasis_hz,
                                kHighestEmphasisHz));
}

void condition(const Conditioning& conditioning, Recording& recording) {
  if (conditioning.pre_emphasis_hz > 0.0) {
    const auto keep =
        static_cast<float>(std::exp(-2.0 * std::numbers::pi * conditioning.pre_emphasis_hz / recording.sample_rate));
    float before = 0.0f;
    for (float& sample : recording.samples) {
      const float now = sample;
      sample = now - keep * before;
      before = now;
    }
  }
  const auto pad = static_cast<std::size_t>(std::llround(conditioning.silence_ms * recording.sample_rate / 1000.0));
  recording.samples.insert(recording.samples.begin(), pad, 0.0f);
  recording.samples.insert(recording.samples.end(), pad, 0.0f);
}

}  // namespace spikeloom
