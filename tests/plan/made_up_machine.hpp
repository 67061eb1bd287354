// A machine whose figures are round numbers: predictions can be worked out by hand, and nothing is timed.
#pragma once

#include <string>
#include <vector>

#include "plan/cost.hpp"

namespace spikeloom::testing {

inline Machine made_up_machine(int cores) {
  Machine machine;
  machine.cpu = "made up";
  machine.cores = cores;
  machine.l1_bytes = 32 << 10, machine.l2_bytes = 1 << 20, machine.l3_bytes = 32 << 20;
  for (int cpu = 0; cpu < cores; ++cpu) machine.seats.push_back({cpu, cpu, 0, 0});
  return machine;
}

inline MachineFigures made_up_figures(int workers) {
  MachineFigures f;
  f.cpu = "made up", f.instruction_set = "none", f.workers = workers, f.clock_ghz = 3.0;
  f.l1_bandwidth = 200.0, f.l2_bandwidth = 100.0, f.l3_bandwidth = 25.0, f.dram_bandwidth = 10.0;
  f.l2_row_bandwidth = 100.0, f.l3_row_bandwidth = 20.0, f.dram_row_bandwidth = 8.0;
  f.l3_bandwidth_all = 40.0, f.dram_bandwidth_all = 15.0;
  f.row_ns = {{1e6, 1e7, 1e9}, {2.5, 10.0, 30.0}};
  f.gemm_peak = f.gemm_forward = f.gemm_weight_gradient = f.gemm_input_gradient = 100.0;
  for (TileCosts& tile : f.tiles) {
    tile.forward_step = {{0.0, 1.0}, {10.0, 15.0}};
    tile.forward_rows = {{0.0, 1.0}, {0.0, 2.5}};
    tile.delta_step = {{0.0, 1.0}, {15.0, 17.0}};
    tile.weight_rows = {{0.0, 1.0}, {1.0, 3.5}};
    tile.input_rows = {{0.0, 1.0}, {1.0, 4.0}};
    tile.forward_factor = tile.weight_factor = tile.input_factor = {{262144.0, 4194304.0}, {1.0, 3.0}};
    tile.membrane_step_ns = 20.0;
  }
  f.half_tiles = {f.tiles[1], f.tiles[2]};
  f.merge_row_ns = 5.0, f.merge_entry_ns = 2.0, f.transpose_event_ns = 2.0, f.transpose_input_ns = 1.0;
  f.distribute_event_ns = 2.0, f.add_partial_ns = 0.1, f.gather_row_ns = 1.0, f.gather_event_ns = 0.2;
  f.loss_step_ns = 10.0, f.loss_output_ns = 3.0, f.copy_ns = 0.25, f.barrier_ns = 1000.0;
  f.adam_ns = f.adam_all_ns = {{1e6, 1e8}, {0.5, 2.0}};
  return f;
}

/// LIF layers of these sizes on `channels`, and a leaky integrator with ten outputs.
inline NetworkSpec layered(int channels, const std::vector<int>& sizes, int steps) {
  NetworkSpec network;
  network.channels = channels;
  network.steps = steps;
  for (const int size : sizes) {
    LayerSpec& layer = network.layers.emplace_back();
    layer.name = "hidden" + std::to_string(network.layers.size());
    layer.size = size;
  }
  LayerSpec& readout = network.layers.emplace_back();
  readout.name = "output";
  readout.neuron = NeuronKind::leaky_integrator;
  readout.size = 10;
  return network;
}

inline Workload workload(const NetworkSpec& network, int batch, double input, double activity) {
  Workload work;
  work.batch = batch;
  work.steps = network.steps;
  work.input_activity = input;
  for (const LayerSpec& layer : network.layers) {
    work.activity.push_back(layer.spiking() ? activity : 0.0);
    work.active_fraction.push_back(layer.spiking() ? 2.0 * activity : 0.0);
  }
  return work;
}

}  // namespace spikeloom::testing
