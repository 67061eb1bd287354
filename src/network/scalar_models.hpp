// The neuron models and surrogates for one neuron in float or double: what the references compute with.
#pragma once

#include <cmath>

#include <spikeloom/error.hpp>
#include "network/neuron_constants.hpp"

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
Number only(bool mask, Number a) {
  return mask ? a : Number{0};
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

#include "network/models/all.inl.hpp"
#include "network/models/leaky_integrator.inl.hpp"
#include "network/surrogates.inl.hpp"

/// Calls f(Model()) with the model of such neurons.
template <class Function>
auto with_model(NeuronKind neuron, const Function& f) {
  switch (neuron) {
    case NeuronKind::lif:
    case NeuronKind::integrate_and_fire:
      return f(Lif());
    case NeuronKind::cuba_lif:
      return f(CubaLif());
    case NeuronKind::alif:
      return f(AdaptiveThreshold());
    case NeuronKind::adlif:
    case NeuronKind::se_adlif:
      return f(AdaptiveCurrent());
    case NeuronKind::leaky_integrator:
    case NeuronKind::linear:
      break;
  }
  throw InternalError("these neurons do not spike");
}

/// The constants of one neuron as a model wants them.
template <class Model, class Number, class Columns>
typename Model::template Constants<Number> constants_of(const Columns& columns, std::size_t neuron) {
  typename Model::template Constants<Number> constants;
  Model::visit(constants, [&](NeuronConstant which, Number& value) { value = columns[which][neuron]; });
  return constants;
}

}  // namespace spikeloom::scalar
