// Measured figures of a machine, as plain numbers: what its memory, its matrix products and our kernels take. The
// measuring is in src/train/measure; the cost model (cost.hpp) reads them; figures_file.hpp keeps them.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace spikeloom {

/// A measured function of one positive variable: straight lines between its points, the first point's value before
/// them, and the last line's slope (or value, see `at_most_last`) beyond.
struct Curve {
  std::vector<double> x;  // ascending
  std::vector<double> y;

  double at(double where) const;
  /// The same, but constant beyond the last point.
  double at_most_last(double where) const;
};

/// Costs of a tile's kernels, in nanoseconds of one core. "Factor" curves are 1 where everything is in the L2 cache.
struct TileCosts {
  Curve forward_step;           // per (tile, step), by entries that the step lists: membranes, lists, surrogate
  Curve forward_rows;           // per (tile, step), by input events: what these add
  Curve forward_factor;         // of forward_rows, by bytes of the tile's weights
  Curve delta_step;             // per (tile, step), by entries
  Curve weight_rows;            // per (tile, input), by events of the input in a range of rows
  Curve weight_factor;          // of weight_rows, by bytes of the range's delta rows
  Curve input_rows;             // per (tile, step), by active neurons below
  Curve input_factor;           // of input_rows, by bytes of the tile's weights
  double membrane_step_ns = 0;  // per (tile, step) of a leaky integrator, forward and delta
};

inline constexpr std::array<int, 3> kTileWidths{16, 32, 64};
/// Of tiles that read bf16 copies of weights and deltas.
inline constexpr std::array<int, 2> kHalfTileWidths{32, 64};

struct MachineFigures {
  std::string cpu;
  std::string instruction_set;  // of the kernels
  int workers = 1;              // that the figures named _all were measured with
  double clock_ghz = 0.0;       // one dependent addition a cycle

  // Reading, bytes per nanosecond of one core: in order, and rows of 256 bytes in random order.
  double l1_bandwidth = 0.0;
  double l2_bandwidth = 0.0;
  double l3_bandwidth = 0.0;
  double dram_bandwidth = 0.0;
  double l2_row_bandwidth = 0.0;
  double l3_row_bandwidth = 0.0;
  double dram_row_bandwidth = 0.0;
  Curve row_ns;                   // per row of 256 bytes at random, by the bytes that are read again and again
  double l3_bandwidth_all = 0.0;  // of all workers together
  double dram_bandwidth_all = 0.0;

  // Matrix products of one core, floating-point operations per nanosecond: the best shape, and those of the dense mode.
  double gemm_peak = 0.0;
  double gemm_forward = 0.0;
  double gemm_weight_gradient = 0.0;
  double gemm_input_gradient = 0.0;

  std::array<TileCosts, kTileWidths.size()> tiles;           // by width, as kTileWidths
  std::array<TileCosts, kHalfTileWidths.size()> half_tiles;  // the same in bf16

  // Lists, nanoseconds of one core.
  double merge_row_ns = 0.0;         // per (tile, step): a layer's list from those of its tiles
  double merge_entry_ns = 0.0;       // and per entry of these
  double transpose_event_ns = 0.0;   // sorting events by input
  double transpose_input_ns = 0.0;   // per input and range
  double distribute_event_ns = 0.0;  // gradients of active neurons to their tiles
  double add_partial_ns = 0.0;       // per event and tile above
  double gather_row_ns = 0.0;        // assembling a batch: per step
  double gather_event_ns = 0.0;      // and per event
  double loss_step_ns = 0.0;         // per step of a sample: cross-entropy of every step
  double loss_output_ns = 0.0;       // and per class
  double copy_ns = 0.0;              // per float copied from a matrix to another (dense mode)
  double barrier_ns = 0.0;           // one parallel region of all workers
  Curve adam_ns;                     // per parameter, by bytes of weights and moments
  Curve adam_all_ns;                 // the same with all workers at work, per parameter of one worker

  const TileCosts& of_width(int width, bool half_rows = false) const;
};

}  // namespace spikeloom
