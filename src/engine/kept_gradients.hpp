// Gradients that outlive their tile's turn: what is done with them at the end of a batch.
#pragma once

#include <utility>
#include <vector>

#include "engine/passes.hpp"

namespace spikeloom {

class KeptGradients {
 public:
  KeptGradients(std::vector<LayerState>& layers, WorkerTeam& team, std::vector<WorkerScratch>& scratch)
      : layers_(layers), team_(team), scratch_(scratch) {}

  /// Adds up what each chunk of a batch leaves, in their order; with the last, the sum takes its place.
  void add_up(bool first, bool last);
  /// Scales them to at most the global norm `gradient_clip` (0: not), summed in double, tile by tile in order; then
  /// every tile's are applied by its owner.
  void clip_and_update(ParameterUpdate& update, double gradient_clip);
  void update_all(ParameterUpdate& update, float scale = 1.0f);
  /// In canonical order.
  void write_to(Parameters& gradient);

 private:
  /// A tile's that belong to parameters, and their lengths.
  static std::vector<std::pair<float*, std::size_t>> gradients_of(LayerState& layer, int tile);
  double squared_norm();

  std::vector<LayerState>& layers_;
  WorkerTeam& team_;
  std::vector<WorkerScratch>& scratch_;
  std::vector<std::vector<float>> sums_;  // per tile of all layers: one parameter after the other
};

}  // namespace spikeloom
