// From a layer's description and its neurons' parameters to the constants that the models compute with, one number per
// neuron, computed in double and rounded once.
#pragma once

#include <array>
#include <span>
#include <vector>

#include <spikeloom/network.hpp>
#include "network/parameters.hpp"

namespace spikeloom {

/// What models/*.inl.hpp and the surrogate's window are made of; each model uses some of them.
enum class NeuronConstant {
  decay,
  gain,  // k
  threshold,
  spiked_slope,
  spiked_offset,
  second_decay,  // of the synaptic current or the adaptation
  adaptation,
  spiked_adaptation,
  spike_drive,
  held_drive,
  window_low,  // the active set is window_low < v <= window_high, v the potential compared with the threshold
  window_high,
};
inline constexpr int kNeuronConstants = 12;

/// Every vector has the layer's size. For layers that do not spike only decay and gain are used.
template <class Number>
struct NeuronConstants {
  std::array<std::vector<Number>, kNeuronConstants> columns;
  std::vector<Number>& operator[](NeuronConstant which) { return columns[static_cast<int>(which)]; }
  const std::vector<Number>& operator[](NeuronConstant which) const { return columns[static_cast<int>(which)]; }
};

/// `window_low` replaces the layer's own lower end (in units of the threshold) unless it is NaN. The window is cut to
/// the support of the surrogate (triangle: |x| < 1; box: |x| <= 1/2; quadratic: |x| < 1/beta).
template <class Number>
NeuronConstants<Number> neuron_constants(const LayerSpec& layer, const LayerParameters& parameters, double window_low);

/// dLoss/d(parameter) of one neuron from dLoss/d(constant) of all constants.
double parameter_gradient(const LayerSpec& layer, const LayerParameters& parameters, std::size_t neuron,
                          std::span<const double, kNeuronConstants> constant_gradients, NeuronParameter parameter);

/// Constants of the layer's surrogate: {slope, amplitude}, see surrogates.inl.hpp.
struct SurrogateNumbers {
  double slope = 0.0;
  double amplitude = 0.0;
};
SurrogateNumbers surrogate_numbers(const SurrogateSpec& surrogate);

}  // namespace spikeloom
