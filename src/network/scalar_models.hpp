// The neuron models and surrogates for one neuron in float or double: what the references compute with.
#pragma once

#include <cmath>

namespace spikeloom::scalar {

template <class Number>
Number mul_add(Number a, Number b, Number c) {
  return std::fma(a, b, c);
}
template <class Number>
Number select(bool mask, Number yes, Number no) {
  return mask ? yes : no;
}
template <class Number>
Number abs_of(Number a) {
  return std::fabs(a);
}
template <class Number>
Number max_of(Number a, Number b) {
  return a > b ? a : b;
}
inline float flush_tiny(float a) { return std::fabs(a) >= 1e-30f ? a : 0.0f; }
inline double flush_tiny(double a) { return a; }

#include "network/models/leaky_integrator.inl.hpp"
#include "network/models/lif.inl.hpp"
#include "network/surrogates.inl.hpp"

}  // namespace spikeloom::scalar
