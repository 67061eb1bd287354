#include "plan/plan.hpp"

#include <algorithm>

namespace spikeloom {
namespace {

/// The recurrent weights that a worker can keep near it while it takes a sample through all tiles: half of the smallest
/// L2 of today's server cores, 1 MB. The other half is for what streams by.
constexpr std::size_t kNearBytes = std::size_t{512} << 10;

/// Partial sums of the input gradient are bounded by taking the samples in groups, and every group adds to the weight
/// gradient anew. That costs nothing where it stays in the workers' L2, so such layers take small groups; elsewhere 1.4
/// % of a training step for each group (nmnist-mlp; Xeon, L2 2 MB).
constexpr std::size_t kNearGradientBytes = std::size_t{2} << 20;
constexpr std::size_t kNearPartialBytes = std::size_t{4} << 20;

/// A tile is as wide as four 16-lane registers, so that the carried membranes and the sums fit the registers beside
/// each other; layers of at most 32 or 16 neurons (readouts) take a narrower one instead of padding.
int tile_width(int size) {
  if (size <= 16) return 16;
  if (size <= 32) return 32;
  return 64;
}

/// Bytes of the weights that spikes reach step by step: those from the layer itself, and from others of its part.
std::size_t stepped_bytes(const NetworkSpec& network, const Plan& plan, const std::vector<int>& part, int layer) {
  std::size_t inputs = network.layers[layer].recurrent || part.size() == 1 ? network.layers[layer].size : 0;
  for (const int source : network.sources_of(layer)) {
    if (std::find(part.begin(), part.end(), source) != part.end()) inputs += network.size_of(source);
  }
  return sizeof(float) * inputs * plan.layers[layer].tiles * plan.layers[layer].tile_width;
}

}  // namespace

std::vector<TileShare> share_tiles(int tiles, int workers, bool split) {
  std::vector<TileShare> shares;
  for (int tile = 0; tile < tiles; ++tile) {
    // In units of 1 / workers of a tile: the tile is [from, from + workers), a worker has [w * tiles, (w + 1) * tiles).
    const std::int64_t from = static_cast<std::int64_t>(tile) * workers;
    const int first_worker = static_cast<int>(from / tiles);
    if (!split) {
      shares.push_back({tile, first_worker});
      continue;
    }
    for (std::int64_t worker = first_worker; worker * tiles < from + workers; ++worker) {
      const std::int64_t begin = std::max<std::int64_t>(worker * tiles - from, 0);
      const std::int64_t end = std::min<std::int64_t>((worker + 1) * tiles - from, workers);
      shares.push_back({tile, static_cast<int>(worker), static_cast<int>(begin), static_cast<int>(end), workers});
    }
  }
  return shares;
}

std::vector<int> owners_of(const LayerPlan& layer) {
  std::vector<int> owners(layer.tiles, 0);
  for (const TileShare& share : layer.shares) {
    if (share.first == 0) owners[share.tile] = share.worker;
  }
  return owners;
}

int shared_tiles(const LayerPlan& layer) {
  return static_cast<int>(std::count_if(layer.shares.begin(), layer.shares.end(),
                                        [](const TileShare& share) { return share.first == 0 && !share.whole(); }));
}

std::vector<double> tiles_per_worker(const LayerPlan& layer, int workers) {
  std::vector<double> tiles(workers, 0.0);
  for (const TileShare& share : layer.shares)
    tiles[share.worker] += static_cast<double>(share.last - share.first) / share.parts;
  return tiles;
}

Plan make_plan(const NetworkSpec& network, EngineMode mode, int workers, EnginePrecision precision, int bptt_steps) {
  Plan plan;
  plan.workers = workers;
  plan.mode = mode;
  plan.bptt_steps = bptt_steps;
  for (const LayerSpec& layer : network.layers) {
    LayerPlan& placed = plan.layers.emplace_back();
    placed.tile_width = tile_width(layer.size);
    placed.tiles = (layer.size + placed.tile_width - 1) / placed.tile_width;
    // Readouts are small, and layers of 16 do not fill a row of pairs.
    placed.half_rows = precision == EnginePrecision::bf16 && layer.spiking() && placed.tile_width > 16;
    const std::size_t gradient_bytes = sizeof(float) *
                                       static_cast<std::size_t>(network.inputs_of(plan.layers.size() - 1)) *
                                       placed.tiles * placed.tile_width;
    if (gradient_bytes <= kNearGradientBytes) placed.partial_budget_bytes = kNearPartialBytes;
  }
  for (const std::vector<int>& part : network.connected_parts()) {
    std::size_t bytes = 0;
    for (const int layer : part) bytes += stepped_bytes(network, plan, part, layer);
    for (const int layer : part) {
      LayerPlan& placed = plan.layers[layer];
      placed.step_schedule = bytes <= kNearBytes ? StepSchedule::sample_major : StepSchedule::step_major;
      const bool stepped = part.size() > 1 || network.layers[layer].recurrent;
      if (stepped) placed.half_rows = false;
      // Tiles of such layers need each other at every step, and readouts are shared by samples as a whole.
      placed.shares = share_tiles(placed.tiles, workers, network.layers[layer].spiking() && !stepped);
    }
  }
  return plan;
}

}  // namespace spikeloom
