// The numbers of a network in the order that files and other frameworks use: what checkpoints hold and what the engine
// imports and exports.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <spikeloom/network.hpp>

namespace spikeloom {

/// One layer's numbers. `weight` is (size, inputs), row-major, as in PyTorch; `bias` (size) or empty; `decay` (size) is
/// alpha per neuron, not trained.
struct LayerParameters {
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> decay;
};

struct Parameters {
  std::vector<LayerParameters> layers;
};

/// Decays per neuron (drawn for ranges) and weights by the layer's rule where the rule needs no data: uniform
/// +-1/sqrt(N_in), normal sd 1/sqrt(N_in), kaiming normal sd sqrt(2/N_in), all times init_gain; biases 0. For `rate`
/// and `lsuv` this is the starting point (normal; orthogonal) that train/initialise scales from data.
Parameters initial_parameters(const NetworkSpec& network, std::uint64_t seed);

}  // namespace spikeloom
