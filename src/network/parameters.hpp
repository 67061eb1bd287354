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

/// What is trained of a layer.
enum class ParameterKind { weight, recurrent_weight, bias };
inline constexpr ParameterKind kParameterKinds[] = {ParameterKind::weight, ParameterKind::recurrent_weight,
                                                    ParameterKind::bias};
/// "weight", "recurrent_weight", "bias": as in files and messages.
std::string_view name_of(ParameterKind kind);

/// Whether a layer has such parameters.
bool has_parameter(const LayerSpec& layer, ParameterKind kind);
/// Numbers per neuron of it: what reaches a neuron, or 1 for biases.
std::size_t parameter_columns(const NetworkSpec& network, std::size_t layer, ParameterKind kind);

/// One layer's numbers. `weight` is (size, inputs), row-major, as in PyTorch; `recurrent_weight` (size, size),
/// [to][from], or empty; `bias` (size) or empty; `decay` (size) is alpha per neuron, not trained.
struct LayerParameters {
  std::vector<float> weight;
  std::vector<float> recurrent_weight = {};
  std::vector<float> bias = {};
  std::vector<float> decay = {};
  std::vector<float> delay = {};  // (size) whole steps per neuron, not trained; empty without delays

  std::vector<float>& of(ParameterKind kind);
  const std::vector<float>& of(ParameterKind kind) const { return const_cast<LayerParameters*>(this)->of(kind); }
};

struct Parameters {
  std::vector<LayerParameters> layers;
};

/// Decays per neuron (drawn for ranges) and weights by the layer's rule where the rule needs no data: uniform
/// +-1/sqrt(N_in), normal sd 1/sqrt(N_in), kaiming normal sd sqrt(2/N_in), all times init_gain; biases 0. For `rate`
/// and `lsuv` this is the starting point (normal; orthogonal) that train/initialise scales from data. Recurrent
/// weights: orthogonal or normal sd 1/sqrt(N), times recurrent_gain.
Parameters initial_parameters(const NetworkSpec& network, std::uint64_t seed);

}  // namespace spikeloom
