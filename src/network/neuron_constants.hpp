// From a layer's description to the constants of its neurons, one number per neuron, computed in double and rounded
// once.
#pragma once

#include <span>
#include <vector>

#include <spikeloom/network.hpp>

namespace spikeloom {

/// Per-neuron constants as the models and kernels want them; every vector has the layer's size. For non-spiking layers
/// only decay and gain are used.
template <class Number>
struct NeuronConstants {
  std::vector<Number> decay;
  std::vector<Number> gain;  // k
  std::vector<Number> threshold;
  std::vector<Number> spiked_slope;  // see models/lif.inl.hpp
  std::vector<Number> spiked_offset;
  std::vector<Number> window_low;  // the active set is window_low < u <= window_high
  std::vector<Number> window_high;
};

/// `decay` holds alpha per neuron. `window_low` replaces the layer's own lower end (in units of the threshold) unless
/// it is NaN. The window is cut to the support of the surrogate (triangle: |x| < 1; box: |x| <= 1/2; quadratic: |x| <
/// 1/beta).
template <class Number>
NeuronConstants<Number> neuron_constants(const LayerSpec& layer, std::span<const float> decay, double window_low);

/// Constants of the layer's surrogate: {slope, amplitude}, see surrogates.inl.hpp.
struct SurrogateNumbers {
  double slope = 0.0;
  double amplitude = 0.0;
};
SurrogateNumbers surrogate_numbers(const SurrogateSpec& surrogate);

}  // namespace spikeloom
