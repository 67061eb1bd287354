#include "data/encode/image_spikes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/random.hpp"

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

constexpr double kWhite = 255.0;
constexpr double kTauOfWindow = 0.4;  // 20 of 50 steps

/// Of the window, from 0 for white to 1 at the floor.
double logarithmic_latency(double brightness, double floor) {
  const double threshold = floor * -std::expm1(-1.0 / kTauOfWindow);
  const auto time = [threshold](double x) { return -std::log1p(-threshold / x); };
  return floor < 1.0 ? (time(brightness) - time(1.0)) / (time(floor) - time(1.0)) : 0.0;
}

double linear_latency(double brightness, double floor) {
  return floor < 1.0 ? (1.0 - brightness) / (1.0 - floor) : 0.0;
}

Event event_at(int step, std::size_t pixel) {
  return {step * kImageStepUs + kImageStepUs / 2, static_cast<std::uint32_t>(pixel)};
}

}  // namespace

void check(const ImageEncoding& encoding) {
  if (encoding.steps < 1 || encoding.steps > kMostImageSteps)
    throw UserError(fmt::format("steps = {}; allowed: 1 to {}", encoding.steps, kMostImageSteps));
  if (!(encoding.floor > 0.0 && encoding.floor <= 1.0))
    throw UserError(fmt::format("floor = {}; allowed: above 0 and up to 1", encoding.floor));
  if (!(encoding.rate > 0.0 && encoding.rate <= 1.0))
    throw UserError(fmt::format("rate = {}; allowed: above 0 and up to 1", encoding.rate));
}

std::array<int, 256> latency_steps(const ImageEncoding& encoding) {
  check(encoding);
  std::array<int, 256> steps{};
  for (std::size_t value = 0; value < steps.size(); ++value) {
    const double brightness = static_cast<double>(value) / kWhite;
    steps[value] = -1;
    if (brightness < encoding.floor) continue;
    const double latency = encoding.encoder == ImageEncoder::latency_log
                               ? logarithmic_latency(brightness, encoding.floor)
                               : linear_latency(brightness, encoding.floor);
    steps[value] = std::clamp(static_cast<int>(latency * encoding.steps), 0, encoding.steps - 1);
  }
  return steps;
}

ImageSpikes::ImageSpikes(const ImageEncoding& encoding) : encoding_(encoding) {
  check(encoding);
  step_of_ = latency_steps(encoding);
  for (std::size_t value = 0; value < below_.size(); ++value)
    below_[value] =
        static_cast<std::uint64_t>(std::llround(encoding.rate * (static_cast<double>(value) / kWhite) * 0x1p32));
}

std::vector<Event> ImageSpikes::encode(std::span<const std::uint8_t> image, const RandomStream& random) const {
  std::vector<Event> events;
  for (std::size_t pixel = 0; pixel < image.size(); ++pixel) {
    if (encoding_.encoder != ImageEncoder::rate) {
      if (step_of_[image[pixel]] >= 0) events.push_back(event_at(step_of_[image[pixel]], pixel));
      continue;
    }
    const std::uint64_t below = below_[image[pixel]];
    if (below == 0) continue;
    const auto first_draw = static_cast<std::uint64_t>(pixel) * static_cast<std::uint64_t>(encoding_.steps);
    for (int step = 0; step < encoding_.steps; ++step)
      if (random.bits_at(first_draw + static_cast<std::uint64_t>(step)) < below)
        events.push_back(event_at(step, pixel));
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time_us < b.time_us; });
  return events;
}

}  // namespace spikeloom
