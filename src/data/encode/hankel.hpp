// The Hankel function that describes a travelling wave on the basilar membrane.
#pragma once

#include <complex>

namespace spikeloom {

/// H0^(1)(z) = J0(z) + i Y0(z) for z in the closed first quadrant, z != 0, to about 1e-7 relative: a power series near
/// the origin and Hankel's asymptotic expansion beyond (Abramowitz and Stegun 9.1.12-13, 9.2.7). The inner ear needs no
/// other quadrant: waves are damped, not amplified.
std::complex<double> hankel0(std::complex<double> z);

}  // namespace spikeloom
