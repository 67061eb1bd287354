// From the grey values of an image to spikes: a pixel is a channel (y * width + x).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

class RandomStream;

enum class ImageEncoder { latency, latency_log, rate };

struct ImageEncoding {
  ImageEncoder encoder = ImageEncoder::latency;
  int steps = 50;       // T, 1 to kMostImageSteps
  double floor = 0.05;  // latency: darker pixels (of 0 to 1) do not spike; above 0, at most 1
  double rate = 0.1;    // rate: spikes per step of a white pixel; above 0, at most 1
};

/// A step of the encoders lasts 1 ms, so that binning with data.step_ms = 1 gives their steps back.
inline constexpr std::int64_t kImageStepUs = 1000;
/// Times are stored as float16 at the middle of a step; up to here that rounds by less than half a step.
inline constexpr int kMostImageSteps = 1000;

/// Throws UserError naming the option, its value and the allowed range.
void check(const ImageEncoding& encoding);

/// The step in which a pixel of each grey value spikes, -1 where it does not: never later for the brighter of two, and
/// white in step 0.
///
/// latency: T (1 - x) / (1 - floor) for a brightness of x. Source: snnTorch, spikegen.latency (linear = True).
///
/// latency_log: when a leaky integrator with time constant tau = 0.4 T and a constant input of x
/// crosses its threshold theta, t(x) = tau ln(x / (x - theta)); theta is such that a pixel at the floor does so at T,
/// and times are stretched so that white does so at 0. Sources: F. Zenke, SpyTorch, tutorial 2 (on Fashion-MNIST, theta
/// 0.2, tau 20 steps); snnTorch, spikegen.latency (normalize = True).
std::array<int, 256> latency_steps(const ImageEncoding& encoding);

/// Turns images into events, ascending by step and channel, in the middle of their step.
class ImageSpikes {
 public:
  /// Throws UserError as check() does.
  explicit ImageSpikes(const ImageEncoding& encoding);

  /// Latency: one spike per pixel that is not below the floor; `random` is not used. Rate: in every step, each pixel
  /// spikes with probability rate * brightness, independently; draw number pixel * T + step of `random` decides.
  std::vector<Event> encode(std::span<const std::uint8_t> image, const RandomStream& random) const;

 private:
  ImageEncoding encoding_;
  std::array<int, 256> step_of_{};          // latency
  std::array<std::uint64_t, 256> below_{};  // rate: spikes where 32 random bits are below this
};

}  // namespace spikeloom
