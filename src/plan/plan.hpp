// Who does what: the tiles of every layer, their workers, and the sizes of the groups of samples that are worked on at
// a time.
#pragma once

#include <cstdint>
#include <vector>

#include <spikeloom/configuration.hpp>
#include <spikeloom/network.hpp>

namespace spikeloom {

/// How the tiles of a recurrent layer, or of layers that feedback joins, keep step: each needs the spikes, and going
/// back the deltas, that all others had one step before. Both give the same bits.
enum class StepSchedule {
  sample_major,  // a worker takes a whole sample through all steps, visiting all tiles in each: nobody waits
  step_major,    // each worker keeps its tiles; all samples advance one step, then the workers meet
};

/// A worker's part of a tile: of `parts` equal parts of what there is (samples; inputs, where samples need each other)
/// those from `first` to `last`.
struct TileShare {
  int tile = 0;
  int worker = 0;
  int first = 0;
  int last = 1;  // one past
  int parts = 1;

  bool whole() const { return first == 0 && last == parts; }
  /// Where the part of `count` things begins and ends.
  int begin(int count) const { return place(first, count); }
  int end(int count) const { return place(last, count); }

 private:
  int place(int part, int count) const { return static_cast<int>(static_cast<std::int64_t>(count) * part / parts); }
};

struct LayerPlan {
  int tile_width = 64;  // columns of a tile: 64, 32 or 16; follows from the network alone
  int tiles = 1;
  std::vector<TileShare> shares;                            // tile by tile, each from its first part to its last
  bool half_rows = false;                                   // the list passes read bf16 copies of weights and deltas
  StepSchedule step_schedule = StepSchedule::sample_major;  // of a recurrent layer, or the same of all that
                                                            // feedback joins; follows from the network alone
  std::size_t partial_budget_bytes = std::size_t{64}
                                     << 20;  // partial sums of the input gradient that may be alive at once
};

struct Plan {
  int workers = 1;
  EngineMode mode = EngineMode::automatic;
  int bptt_steps = 0;  // steps of a chunk, at whose start gradients end; 0: the whole recording
  std::vector<LayerPlan> layers;
  int delta_rows =
      1024;  // (sample, step) rows of delta that a worker holds at a time: 256 KB for a tile of 64, a share of the L2
  int recurrent_samples = 256;  // samples that advance together at most: state of a step for each, 512 bytes a neuron
  std::size_t recurrent_delta_bytes = std::size_t{6} << 20;  // deltas of a recurrent layer, all tiles, that may be
                                                             // alive at once: what is near the cores, below their L3
  std::size_t shared_delta_bytes = std::size_t{64} << 20;    // likewise, of tiles that several workers share
};

/// Neighbouring tiles to one worker. Where they do not divide evenly, whole tiles go to the worker of their larger
/// part, or with `split` a cut goes through them.
std::vector<TileShare> share_tiles(int tiles, int workers, bool split);
/// Who has the first part of each tile: what cannot be shared is this worker's.
std::vector<int> owners_of(const LayerPlan& layer);
/// Tiles that several workers share.
int shared_tiles(const LayerPlan& layer);
/// Tiles of each worker; shared ones count by parts.
std::vector<double> tiles_per_worker(const LayerPlan& layer, int workers);

Plan make_plan(const NetworkSpec& network, EngineMode mode, int workers,
               EnginePrecision precision = EnginePrecision::fp32, int bptt_steps = 0);

}  // namespace spikeloom
