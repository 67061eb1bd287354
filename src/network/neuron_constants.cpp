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

/// What a spike leaves of the membrane for the next step: slope * u + offset.
struct SpikedBranch {
  double slope = 0.0;
  double offset = 0.0;
};

SpikedBranch spiked_branch(ResetKind reset, double decay, double threshold) {
  switch (reset) {
    case ResetKind::zero:
      return {0.0, 0.0};
    case ResetKind::subtract:
      return {decay, -decay * threshold};
    case ResetKind::subtract_after_decay:
      return {decay, -threshold};
    case ResetKind::none:
      return {decay, 0.0};
  }
  throw InternalError("unknown reset");
}

}  // namespace

template <class Number>
NeuronConstants<Number> neuron_constants(const LayerSpec& layer, std::span<const float> decays, double window_low) {
  const SurrogateSpec& surrogate = layer.surrogate;
  const double theta = layer.threshold;
  const double low_units = std::isnan(window_low) ? surrogate.window_low : window_low;
  const double low = std::max(low_units * theta, theta - half_support(surrogate));
  const double high = std::min(surrogate.window_high * theta, theta + half_support(surrogate));
  NeuronConstants<Number> result;
  for (const float stored : decays) {
    const double decay = layer.neuron == NeuronKind::linear ? 0.0 : static_cast<double>(stored);
    const double gain = layer.input_scaling == InputScaling::leak ? (1.0 - decay) * layer.input_gain : layer.input_gain;
    const SpikedBranch spiked = spiked_branch(layer.reset, decay, theta);
    result.decay.push_back(static_cast<Number>(decay));
    result.gain.push_back(static_cast<Number>(gain));
    result.threshold.push_back(static_cast<Number>(theta));
    result.spiked_slope.push_back(static_cast<Number>(spiked.slope));
    result.spiked_offset.push_back(static_cast<Number>(spiked.offset));
    result.window_low.push_back(static_cast<Number>(low));
    result.window_high.push_back(static_cast<Number>(high));
  }
  return result;
}

template NeuronConstants<float> neuron_constants(const LayerSpec&, std::span<const float>, double);
template NeuronConstants<double> neuron_constants(const LayerSpec&, std::span<const float>, double);

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
