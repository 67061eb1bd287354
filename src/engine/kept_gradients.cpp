#include "engine/kept_gradients.hpp"

#include <cmath>

namespace spikeloom {

std::vector<std::pair<float*, std::size_t>> KeptGradients::gradients_of(LayerState& layer, int tile) {
  std::vector<std::pair<float*, std::size_t>> gradients;
  float* const of_kind[] = {layer.kept_gradient(tile), layer.kept_recurrent_gradient(tile), layer.bias_gradient(tile)};
  for (const ParameterKind kind : kParameterKinds) {
    if (!has_parameter(layer.spec(), kind)) continue;
    const bool of_neurons = kind >= ParameterKind::decay;
    gradients.emplace_back(of_neurons ? layer.neuron_gradient(kind, tile) : of_kind[static_cast<int>(kind)],
                           layer.block_floats(kind));
  }
  return gradients;
}

void KeptGradients::add_up(bool first, bool last) {
  std::vector<std::pair<LayerState*, int>> tiles;
  for (LayerState& layer : layers_) {
    for (int tile = 0; tile < layer.tiles(); ++tile) tiles.emplace_back(&layer, tile);
  }
  sums_.resize(tiles.size());
  team_.for_each(tiles.size(), [&](std::size_t i, int) {
    std::vector<float>& sum = sums_[i];
    std::size_t at = 0;
    for (const auto& [gradient, count] : gradients_of(*tiles[i].first, tiles[i].second)) {
      sum.resize(std::max(sum.size(), at + count));
      for (std::size_t k = 0; k < count; ++k) sum[at + k] = first ? gradient[k] : sum[at + k] + gradient[k];
      if (last) std::copy_n(sum.data() + at, count, gradient);
      at += count;
    }
  });
}

double KeptGradients::squared_norm() {
  double sum = 0.0;
  for (LayerState& layer : layers_) {
    std::vector<double> parts(layer.tiles());
    team_.for_each(layer.tiles(), [&](std::size_t t, int) {
      const int tile = static_cast<int>(t);
      for (const auto& [gradient, count] : gradients_of(layer, tile)) {
        for (std::size_t i = 0; i < count; ++i) parts[t] += static_cast<double>(gradient[i]) * gradient[i];
      }
    });
    for (const double part : parts) sum += part;
  }
  return sum;
}

void KeptGradients::clip_and_update(ParameterUpdate& update, double gradient_clip) {
  if (gradient_clip <= 0.0) return update_all(update);
  const double norm = std::sqrt(squared_norm());
  update_all(update, norm > gradient_clip ? static_cast<float>(gradient_clip / norm) : 1.0f);
}

void KeptGradients::update_all(ParameterUpdate& update, float scale) {
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    LayerState& layer = layers_[l];
    kept_gradients(layer, 0);  // allocated before the workers need it
    team_.run([&](int worker) {
      for (int tile = 0; tile < layer.tiles(); ++tile) {
        if (layer.owner(tile) != worker) continue;
        for (const auto& [gradient, count] : gradients_of(layer, tile)) scale_by(scale, gradient, count);
        update_tile(layer, tile, kept_gradients(layer, tile), {&update, static_cast<int>(l)}, scratch_[worker]);
      }
    });
  }
}

void KeptGradients::write_to(Parameters& gradient) {
  gradient.layers.clear();
  for (LayerState& layer : layers_) {
    LayerParameters& out = gradient.layers.emplace_back();
    for (std::size_t i = 0; const ParameterKind kind : kParameterKinds) {
      if (!has_parameter(layer.spec(), kind)) continue;
      std::vector<const float*> blocks;
      for (int tile = 0; tile < layer.tiles(); ++tile) blocks.push_back(gradients_of(layer, tile)[i].first);
      out.of(kind) = layer.to_canonical(kind, blocks);
      ++i;
    }
  }
}

}  // namespace spikeloom
