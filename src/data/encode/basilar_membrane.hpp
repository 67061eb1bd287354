// The basilar membrane as a shallow-water wave (Sieroka, Dosch and Rupp, J. Acoust. Soc. Am. 120, 297, 2006), as the
// encoder of the Spiking Heidelberg Digits uses it (Cramer et al. 2020, appendix).
#pragma once

#include <complex>

namespace spikeloom {

/// Constants of the membrane, in cgs units.
struct BasilarMembrane {
  double length = 3.5;             // cm, from base (high frequencies) to apex
  double base_stiffness = 1e9;     // c0, g s^-2 cm^-2
  double stiffness_offset = 3500;  // a, same unit
  double decay = 3.0;              // alpha, 1/cm
  double mass = 0.05;              // m, g cm^-2
  double height = 0.1;             // h of the fluid channel, cm
  double density = 1.0;            // rho of the fluid, g cm^-3
  double damping = 0.15;           // R(0) = damping * sqrt(c0 m)

  /// Resonance of the place without fluid, Hz.
  double resonance_hz(double place) const;
  /// Velocity of the membrane at `place` (cm from the base, 0 .. length) per unit of stimulus, at the angular frequency
  /// `omega` > 0. Time runs as exp(-i omega t) in the paper but as exp(+i omega t) in the encoder's inverse transform,
  /// which therefore turns travel times into leads; data sets made with it have this, so it is kept.
  std::complex<double> velocity(double omega, double place) const;
};

/// The part of `velocity` that does not depend on the place, so that a table over many places computes it once per
/// frequency.
struct BasilarMembraneAtFrequency {
  BasilarMembraneAtFrequency(const BasilarMembrane& membrane, double omega);
  std::complex<double> velocity(double place) const;

 private:
  std::complex<double> impedance(double thinning) const;
  /// sqrt(G / g) H0(G), the pressure wave up to a factor; G is the phase at the place, g the wave number there.
  std::complex<double> pressure(std::complex<double> phase, std::complex<double> wave_number) const;
  std::complex<double> wave_number(std::complex<double> impedance) const;
  std::complex<double> antiderivative(double thinning, std::complex<double> impedance) const;

  const BasilarMembrane& membrane_;
  double omega_;
  double base_damping_;
  double kappa_;  // sqrt(a + m omega^2)
  std::complex<double> base_phase_;
  std::complex<double> base_antiderivative_;
  std::complex<double> source_;  // input impedance over the pressure at the base
};

}  // namespace spikeloom
