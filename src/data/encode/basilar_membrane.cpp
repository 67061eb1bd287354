#include "data/encode/basilar_membrane.hpp"

#include <math.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "data/encode/hankel.hpp"

namespace spikeloom {
namespace {

using Complex = std::complex<double>;
constexpr Complex kI{0.0, 1.0};

/// Impedance at the base of a membrane without mass and damping: a ratio of Bessel functions of orders 0 and 1.
Complex input_impedance(const BasilarMembrane& b, double omega) {
  const double x = 2.0 * omega / b.decay * std::sqrt(2.0 / (b.height * b.base_stiffness));
  return std::sqrt(2.0 * b.base_stiffness / b.height) * (kI * ::j0(x) + ::y0(x)) / (::j1(x) - kI * ::y1(x));
}

}  // namespace

double BasilarMembrane::resonance_hz(double place) const {
  const double stiffness = base_stiffness * std::exp(-decay * place) - stiffness_offset;
  return std::sqrt(std::max(stiffness, 0.0) / mass) / (2.0 * std::numbers::pi);
}

std::complex<double> BasilarMembrane::velocity(double omega, double place) const {
  return BasilarMembraneAtFrequency(*this, omega).velocity(place);
}

// Notation: s = exp(-alpha c / 2) thins the membrane out along c. Its impedance over the place is xi(s) = c0 s^2 - i
// omega R0 s - kappa^2, the wave number g = omega sqrt(rho / (h xi)), and the phase G(c) = 2 g(0) / alpha + integral of
// g from 0 to c. With dc = -2 ds / (alpha s) that integral is elementary: the antiderivative of 1 / (s sqrt(xi)) is (i
// / kappa) ln((2 C + B s + 2 i kappa sqrt(xi)) / s), where B = -i omega R0 and C = -kappa^2.
BasilarMembraneAtFrequency::BasilarMembraneAtFrequency(const BasilarMembrane& membrane, double omega)
    : membrane_(membrane),
      omega_(omega),
      base_damping_(membrane.damping * std::sqrt(membrane.base_stiffness * membrane.mass)),
      kappa_(std::sqrt(membrane.stiffness_offset + membrane.mass * omega * omega)) {
  const Complex xi = impedance(1.0);
  base_phase_ = 2.0 * wave_number(xi) / membrane.decay;
  base_antiderivative_ = antiderivative(1.0, xi);
  source_ = input_impedance(membrane, omega) / pressure(base_phase_, wave_number(xi));
}

Complex BasilarMembraneAtFrequency::impedance(double s) const {
  return {membrane_.base_stiffness * s * s - kappa_ * kappa_, -omega_ * base_damping_ * s};
}

Complex BasilarMembraneAtFrequency::wave_number(Complex xi) const {
  return omega_ * std::sqrt(membrane_.density / (membrane_.height * xi));
}

Complex BasilarMembraneAtFrequency::antiderivative(double s, Complex xi) const {
  return (-2.0 * kappa_ * kappa_ - kI * omega_ * base_damping_ * s + 2.0 * kI * kappa_ * std::sqrt(xi)) / s;
}

Complex BasilarMembraneAtFrequency::pressure(Complex phase, Complex wave_number) const {
  return std::sqrt(phase / wave_number) * hankel0(phase);
}

Complex BasilarMembraneAtFrequency::velocity(double place) const {
  const double s = std::exp(-0.5 * membrane_.decay * place);
  const Complex xi = impedance(s);
  const double scale = 2.0 * omega_ / membrane_.decay * std::sqrt(membrane_.density / membrane_.height);
  const Complex phase = base_phase_ + kI * (scale / kappa_) * std::log(base_antiderivative_ / antiderivative(s, xi));
  return 2.0 * omega_ / xi * pressure(phase, wave_number(xi)) * source_;
}

}  // namespace spikeloom
