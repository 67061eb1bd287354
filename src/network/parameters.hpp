// The numbers of a network in the order that files and other frameworks use: what checkpoints hold and what the engine
// imports and exports.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <spikeloom/network.hpp>

namespace spikeloom {

/// What is trained of a layer; those from `decay` on are the constants of its neurons.
enum class ParameterKind {
  weight,
  recurrent_weight,
  bias,
  decay,
  decay_syn,
  decay_adapt,
  threshold,
  adapt_membrane,
  adapt_spike,
};
inline constexpr ParameterKind kParameterKinds[] = {
    ParameterKind::weight,    ParameterKind::recurrent_weight, ParameterKind::bias,
    ParameterKind::decay,     ParameterKind::decay_syn,        ParameterKind::decay_adapt,
    ParameterKind::threshold, ParameterKind::adapt_membrane,   ParameterKind::adapt_spike};
/// "weight", "recurrent_weight", "bias", ...: as in files and messages.
std::string_view name_of(ParameterKind kind);
ParameterKind kind_of(NeuronParameter parameter);

/// Whether a layer has such parameters and training changes them.
bool has_parameter(const LayerSpec& layer, ParameterKind kind);
/// Whether files hold one number per neuron of it: where neurons may differ, and of decays always.
bool is_stored(const LayerSpec& layer, NeuronParameter parameter);
/// Numbers per neuron of it: what reaches a neuron, or 1.
std::size_t parameter_columns(const NetworkSpec& network, std::size_t layer, ParameterKind kind);

/// One layer's numbers. `weight` is (size, inputs), row-major, as in PyTorch; `recurrent_weight` (size, size),
/// [to][from], or empty; the others (size), or empty: no bias, or the layer's own constant.
struct LayerParameters {
  std::vector<float> weight;
  std::vector<float> recurrent_weight = {};
  std::vector<float> bias = {};
  std::vector<float> decay = {};
  std::vector<float> decay_syn = {};
  std::vector<float> decay_adapt = {};
  std::vector<float> threshold = {};
  std::vector<float> adapt_membrane = {};
  std::vector<float> adapt_spike = {};
  std::vector<float> delay = {};  // (size) whole steps per neuron, not trained; empty without delays

  std::vector<float>& of(ParameterKind kind);
  const std::vector<float>& of(ParameterKind kind) const { return const_cast<LayerParameters*>(this)->of(kind); }
  std::vector<float>& of(NeuronParameter parameter) { return of(kind_of(parameter)); }
  const std::vector<float>& of(NeuronParameter parameter) const { return of(kind_of(parameter)); }
};

struct Parameters {
  std::vector<LayerParameters> layers;
};

/// Constants per neuron (drawn for ranges) and weights by the layer's rule where the rule needs no data: uniform
/// +-1/sqrt(N_in), normal sd 1/sqrt(N_in), kaiming normal sd sqrt(2/N_in), all times init_gain; biases 0. For `rate`
/// and `lsuv` this is the starting point (normal; orthogonal) that train/initialise scales from data. Recurrent
/// weights: orthogonal or normal sd 1/sqrt(N), times recurrent_gain.
Parameters initial_parameters(const NetworkSpec& network, std::uint64_t seed);

}  // namespace spikeloom
