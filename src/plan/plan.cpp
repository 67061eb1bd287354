#include "plan/plan.hpp"

namespace spikeloom {
namespace {

/// The recurrent weights that a worker can keep near it while it takes a sample through all tiles: half of the smallest
/// L2 of today's server cores, 1 MB. The other half is for what streams by.
constexpr std::size_t kNearBytes = std::size_t{512} << 10;

/// A tile is as wide as four 16-lane registers, so that the carried membranes and the sums fit the registers beside
/// each other; layers of at most 32 or 16 neurons (readouts) take a narrower one instead of padding.
int tile_width(int size) {
  if (size <= 16) return 16;
  if (size <= 32) return 32;
  return 64;
}

}  // namespace

Plan make_plan(const NetworkSpec& network, EngineMode mode, int workers, EnginePrecision precision) {
  Plan plan;
  plan.workers = workers;
  plan.mode = mode;
  for (const LayerSpec& layer : network.layers) {
    LayerPlan& placed = plan.layers.emplace_back();
    placed.tile_width = tile_width(layer.size);
    placed.tiles = (layer.size + placed.tile_width - 1) / placed.tile_width;
    // Readouts are small, and layers of 16 do not fill a row of pairs.
    placed.half_rows =
        precision == EnginePrecision::bf16 && layer.spiking() && !layer.recurrent && placed.tile_width > 16;
    const std::size_t recurrent_bytes =
        sizeof(float) * static_cast<std::size_t>(layer.size) * placed.tiles * placed.tile_width;
    placed.step_schedule = recurrent_bytes <= kNearBytes ? StepSchedule::sample_major : StepSchedule::step_major;
    // Neighbouring tiles to one worker, as evenly as whole tiles allow.
    for (int tile = 0; tile < placed.tiles; ++tile)
      placed.worker_of_tile.push_back(static_cast<int>(static_cast<std::int64_t>(tile) * workers / placed.tiles));
  }
  return plan;
}

}  // namespace spikeloom
