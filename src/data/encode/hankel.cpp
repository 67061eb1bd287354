#include "data/encode/hankel.hpp"

#include <cmath>
#include <numbers>

namespace spikeloom {
namespace {

using Complex = std::complex<double>;

// At |z| = 8 both halves err by about 1e-7: the series through cancellation, the expansion because its terms shrink no
// further.
constexpr double kExpansionFrom = 8.0;
constexpr double kEulerGamma = std::numbers::egamma;

Complex near_origin(Complex z) {
  const Complex x = -0.25 * z * z;
  Complex term = 1.0;
  Complex bessel = 1.0;
  Complex harmonic_sum = 0.0;
  double harmonic = 0.0;
  for (int k = 1; k < 60; ++k) {
    term *= x / static_cast<double>(k * k);
    harmonic += 1.0 / k;
    bessel += term;
    harmonic_sum += harmonic * term;
    if (std::norm(term) < 1e-36 * std::norm(bessel)) break;
  }
  const Complex neumann = (2.0 / std::numbers::pi) * ((std::log(0.5 * z) + kEulerGamma) * bessel - harmonic_sum);
  return bessel + Complex(0.0, 1.0) * neumann;
}

Complex far_from_origin(Complex z) {
  const Complex step = Complex(0.0, 1.0) / (8.0 * z);
  Complex term = 1.0;
  Complex sum = 1.0;
  double last = 1.0;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2.0 * k - 1.0;
    term *= -odd * odd / k * step;
    const double size = std::norm(term);
    if (size >= last || size < 1e-32) break;  // an asymptotic series is best cut at its smallest term
    last = size;
    sum += term;
  }
  const Complex phase = Complex(0.0, 1.0) * (z - std::numbers::pi / 4.0);
  return std::sqrt(2.0 / (std::numbers::pi * z)) * std::exp(phase) * sum;
}

}  // namespace

std::complex<double> hankel0(std::complex<double> z) {
  return std::norm(z) < kExpansionFrom * kExpansionFrom ? near_origin(z) : far_from_origin(z);
}

}  // namespace spikeloom
