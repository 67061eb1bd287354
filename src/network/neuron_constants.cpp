#include "network/neuron_constants.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

/// Half the width of where the surrogate is not zero.
double half_support(const SurrogateSpec& surrogate) {
  switch (surrogate.kind) {
    case SurrogateKind::triangle:
      return 1.0;
    case SurrogateKind::box:
      return 0.5;
    case SurrogateKind::quadratic:
      return 1.0 / surrogate.beta;
    case SurrogateKind::superspike:
    case SurrogateKind::arctan:
      break;
  }
  return std::numeric_limits<double>::infinity();
}

/// A number that knows its derivative by one neuron parameter.
struct Dual {
  Dual(double a_value = 0.0, double a_slope = 0.0) : value(a_value), slope(a_slope) {}
  double value;
  double slope;
};
Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
Dual operator-(Dual a) { return {-a.value, -a.slope}; }
Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }

template <class Real>
struct NeuronNumbers {
  std::array<Real, std::size(kNeuronParameters)> numbers;
  Real operator[](NeuronParameter which) const { return numbers[static_cast<int>(which)]; }
};

template <class Real>
struct ConstantNumbers {
  std::array<Real, kNeuronConstants> numbers{};
  Real& operator[](NeuronConstant which) { return numbers[static_cast<int>(which)]; }
};

/// What a spike leaves of the membrane before it decays: slope * u + offset; and whether the decay comes after.
template <class Real>
struct SpikedMembrane {
  Real slope = 1.0;
  Real offset = 0.0;
};

template <class Real>
SpikedMembrane<Real> reset_membrane(ResetKind reset, Real threshold) {
  switch (reset) {
    case ResetKind::zero:
      return {0.0, 0.0};
    case ResetKind::subtract:
    case ResetKind::subtract_after_decay:
      return {1.0, -threshold};
    case ResetKind::none:
      return {1.0, 0.0};
  }
  throw InternalError("unknown reset");
}

/// All constants of one neuron but its window.
template <class Real>
ConstantNumbers<Real> constants_of(const LayerSpec& layer, const NeuronNumbers<Real>& p) {
  using enum NeuronConstant;
  using Parameter = NeuronParameter;
  ConstantNumbers<Real> c;
  const Real alpha = layer.neuron == NeuronKind::linear ? Real(0.0) : p[Parameter::decay];
  const Real theta = p[Parameter::threshold];
  c[decay] = alpha;
  c[gain] = layer.input_scaling == InputScaling::leak ? (Real(1.0) - alpha) * layer.input_gain : Real(layer.input_gain);
  c[threshold] = theta;
  const SpikedMembrane<Real> reset = reset_membrane(layer.reset, theta);
  c[spiked_slope] = alpha * reset.slope;
  c[spiked_offset] = layer.reset == ResetKind::subtract_after_decay ? reset.offset : alpha * reset.offset;
  switch (layer.neuron) {
    case NeuronKind::cuba_lif:
      c[second_decay] = p[Parameter::decay_syn];
      break;
    case NeuronKind::alif: {
      const Real rho = p[Parameter::decay_adapt], beta = p[Parameter::adapt_spike];
      c[second_decay] = rho;
      c[adaptation] = beta;
      c[spike_drive] = layer.adapt_scaled ? Real(1.0) - rho : Real(1.0);
      if (layer.reset == ResetKind::subtract) c[spiked_adaptation] = alpha * beta;
      if (layer.reset == ResetKind::subtract_after_decay) c[spiked_adaptation] = beta;
      break;
    }
    case NeuronKind::adlif:
      c[second_decay] = p[Parameter::decay_adapt];
      c[adaptation] = c[spiked_adaptation] = p[Parameter::adapt_membrane];
      c[spike_drive] = c[held_drive] = p[Parameter::adapt_spike];
      break;
    case NeuronKind::se_adlif: {
      const Real scale = (Real(1.0) - p[Parameter::decay_adapt]) * layer.adapt_gain;
      c[second_decay] = p[Parameter::decay_adapt];
      c[adaptation] = scale * p[Parameter::adapt_membrane];
      c[spiked_adaptation] = c[adaptation] * reset.slope;
      c[held_drive] = scale * p[Parameter::adapt_spike];
      c[spike_drive] = c[adaptation] * reset.offset + c[held_drive];
      break;
    }
    default:
      break;
  }
  return c;
}

/// A neuron's own numbers; the layer's where its parameters hold none.
double number_of(const LayerSpec& layer, const LayerParameters& parameters, NeuronParameter which, std::size_t neuron) {
  if (layer.neuron == NeuronKind::integrate_and_fire && which == NeuronParameter::decay) return 1.0;
  const std::vector<float>& own = parameters.of(which);
  return own.empty() ? layer.initial(which).mean() : static_cast<double>(own[neuron]);
}

template <class Real>
NeuronNumbers<Real> numbers_of(const LayerSpec& layer, const LayerParameters& parameters, std::size_t neuron) {
  NeuronNumbers<Real> result;
  for (const NeuronParameter which : kNeuronParameters)
    result.numbers[static_cast<int>(which)] = Real(number_of(layer, parameters, which, neuron));
  return result;
}

}  // namespace

template <class Number>
NeuronConstants<Number> neuron_constants(const LayerSpec& layer, const LayerParameters& parameters, double window_low) {
  const SurrogateSpec& surrogate = layer.surrogate;
  const double low_units = std::isnan(window_low) ? surrogate.window_low : window_low;
  NeuronConstants<Number> result;
  for (std::size_t neuron = 0; neuron < static_cast<std::size_t>(layer.size); ++neuron) {
    ConstantNumbers<double> constants = constants_of(layer, numbers_of<double>(layer, parameters, neuron));
    const double theta = constants[NeuronConstant::threshold];
    constants[NeuronConstant::window_low] = std::max(low_units * theta, theta - half_support(surrogate));
    constants[NeuronConstant::window_high] = std::min(surrogate.window_high * theta, theta + half_support(surrogate));
    for (int i = 0; i < kNeuronConstants; ++i) result.columns[i].push_back(static_cast<Number>(constants.numbers[i]));
  }
  return result;
}

template NeuronConstants<float> neuron_constants(const LayerSpec&, const LayerParameters&, double);
template NeuronConstants<double> neuron_constants(const LayerSpec&, const LayerParameters&, double);

double parameter_gradient(const LayerSpec& layer, const LayerParameters& parameters, std::size_t neuron,
                          std::span<const double, kNeuronConstants> constant_gradients, NeuronParameter parameter) {
  NeuronNumbers<Dual> numbers = numbers_of<Dual>(layer, parameters, neuron);
  numbers.numbers[static_cast<int>(parameter)].slope = 1.0;
  const ConstantNumbers<Dual> constants = constants_of(layer, numbers);
  double gradient = 0.0;
  for (int i = 0; i < kNeuronConstants; ++i) gradient += constant_gradients[i] * constants.numbers[i].slope;
  return gradient;
}

SurrogateNumbers surrogate_numbers(const SurrogateSpec& surrogate) {
  switch (surrogate.kind) {
    case SurrogateKind::superspike:
    case SurrogateKind::quadratic:
      return {surrogate.beta, 1.0};
    case SurrogateKind::triangle:
      return {1.0, surrogate.gamma};
    case SurrogateKind::box:
      return {1.0, 1.0};
    case SurrogateKind::arctan:
      return {std::numbers::pi * surrogate.beta / 2.0, surrogate.beta / 2.0};
  }
  throw InternalError("unknown surrogate");
}

}  // namespace spikeloom
