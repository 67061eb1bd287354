#include "data/encode/hankel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "data/encode/basilar_membrane.hpp"

namespace spikeloom {
namespace {

using Complex = std::complex<double>;

TEST(Hankel, IsJ0PlusIY0OnTheRealAxis) {
  for (double x = 0.001; x < 70.0; x = 1.07 * x + 0.001) {
    const Complex expected(std::cyl_bessel_j(0.0, x), std::cyl_neumann(0.0, x));
    EXPECT_LT(std::abs(hankel0(x) - expected), 2e-7 * std::abs(expected)) << x;
  }
}

TEST(Hankel, IsK0OnTheImaginaryAxis) {
  for (double x = 0.001; x < 70.0; x = 1.07 * x + 0.001) {
    const Complex expected(0.0, -2.0 / std::numbers::pi * std::cyl_bessel_k(0.0, x));
    EXPECT_LT(std::abs(hankel0(Complex(0.0, x)) - expected), 2e-7 * std::abs(expected)) << x;
  }
}

TEST(Hankel, SeriesAndExpansionMeetOnTheCircleBetweenThem) {
  for (double angle = 0.0; angle <= 1.571; angle += 0.05) {
    const Complex inside = hankel0(std::polar(8.0 - 1e-9, angle));
    const Complex outside = hankel0(std::polar(8.0 + 1e-9, angle));
    EXPECT_LT(std::abs(inside - outside), 1e-6 * std::abs(inside)) << angle;
  }
}

TEST(BasilarMembrane, PhaseIsTheIntegralOfTheWaveNumber) {
  // Where the phase is large, the velocity's phase turns with it: d(arg v)/dc approaches the real part of the wave
  // number.
  const BasilarMembrane membrane;
  const double omega = 2.0 * std::numbers::pi * 4000.0;
  const double place = 0.7;  // tuned to 7.9 kHz
  const double step = 1e-4;
  const double turn =
      std::arg(membrane.velocity(omega, place + step) / membrane.velocity(omega, place - step)) / (2.0 * step);
  const double stiffness = 1e9 * std::exp(-3.0 * place) - 3500.0;
  const double damping = 0.15 * std::sqrt(1e9 * 0.05) * std::exp(-1.5 * place);
  const Complex impedance(stiffness - 0.05 * omega * omega, -omega * damping);
  const Complex wave_number = omega * std::sqrt(1.0 / (0.1 * impedance));
  EXPECT_NEAR(turn, wave_number.real(), 0.1 * wave_number.real());
}

TEST(BasilarMembrane, EveryPlaceRespondsMostJustBelowItsResonance) {
  const BasilarMembrane membrane;
  for (double place = 0.5; place <= 3.5; place += 0.5) {
    double best = 0.0;
    double best_hz = 0.0;
    for (double hz = 20.0; hz < 24'000.0; hz *= 1.01) {
      const double size = std::abs(membrane.velocity(2.0 * std::numbers::pi * hz, place));
      if (size > best) best = size, best_hz = hz;
    }
    EXPECT_LT(best_hz, membrane.resonance_hz(place));
    EXPECT_GT(best_hz, 0.8 * membrane.resonance_hz(place));
  }
}

}  // namespace
}  // namespace spikeloom
