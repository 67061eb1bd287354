#include "data/encode/resample.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <numeric>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

constexpr int kZeroCrossings = 10;
constexpr double kKaiserBeta = 5.0;  // about 50 dB

/// Modified Bessel function of order 0 by its power series; enough for windows (x < 30).
double bessel_i0(double x) {
  double term = 1.0;
  double sum = 1.0;
  for (int k = 1; term > 1e-17 * sum; ++k) {
    term *= (0.5 * x / k) * (0.5 * x / k);
    sum += term;
  }
  return sum;
}

double sinc(double x) { return x == 0.0 ? 1.0 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

}  // namespace

// On the common grid of rate from * up, input sample i sits at i * up and output n at n * down; the prototype filter
// reaches `reach` grid points to each side. Phase p holds those of its taps that meet input samples when the output
// lies p grid points after one.
Resampler::Resampler(int from, int to) {
  if (from < 1 || to < 1) throw InternalError("sample rates must be positive");
  const int common = std::gcd(from, to);
  up_ = to / common;
  down_ = from / common;
  const int widest = std::max(up_, down_);
  const std::int64_t reach = std::int64_t{kZeroCrossings} * widest;
  lead_ = static_cast<int>(reach / up_) + 1;
  taps_ = 2 * lead_ + 1;
  filters_.assign(static_cast<std::size_t>(up_) * taps_, 0.0F);
  std::vector<double> filter(static_cast<std::size_t>(taps_));
  for (int phase = 0; phase < up_; ++phase) {
    double sum = 0.0;
    for (int tap = 0; tap < taps_; ++tap) {
      const std::int64_t distance = phase - std::int64_t{tap - lead_} * up_;
      const double x = static_cast<double>(distance) / static_cast<double>(reach);
      filter[tap] = std::abs(x) > 1.0 ? 0.0
                                      : sinc(static_cast<double>(distance) / widest) *
                                            bessel_i0(kKaiserBeta * std::sqrt(1.0 - x * x)) / bessel_i0(kKaiserBeta);
      sum += filter[tap];
    }
    // Each phase passes a constant unchanged; otherwise a constant would come out with a ripple of the window's
    // stopband.
    for (int tap = 0; tap < taps_; ++tap)
      filters_[static_cast<std::size_t>(phase) * taps_ + tap] = static_cast<float>(filter[tap] / sum);
  }
}

std::vector<float> Resampler::operator()(std::span<const float> samples) const {
  if (up_ == down_) return {samples.begin(), samples.end()};
  const auto size = static_cast<std::int64_t>(samples.size());
  // Zeros at both ends, so that every filter finds its inputs.
  std::vector<float> padded(samples.size() + 2 * static_cast<std::size_t>(lead_), 0.0F);
  std::copy(samples.begin(), samples.end(), padded.begin() + lead_);
  std::vector<float> result(static_cast<std::size_t>((size * up_ + down_ - 1) / down_));
  std::int64_t grid = 0;
  for (float& value : result) {
    const float* filter = &filters_[static_cast<std::size_t>(grid % up_) * taps_];
    const float* input = &padded[static_cast<std::size_t>(grid / up_)];
    float sum = 0.0F;
    for (int tap = 0; tap < taps_; ++tap) sum += filter[tap] * input[tap];
    value = sum;
    grid += down_;
  }
  return result;
}

}  // namespace spikeloom
