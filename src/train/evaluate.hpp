// Loss, decisions and activities of a network over many samples.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <spikeloom/dataset.hpp>

#include "core/progress.hpp"
#include "engine/engine.hpp"

namespace spikeloom {

struct Evaluation {
  std::uint64_t samples = 0;
  double loss = 0.0;      // mean over samples; 0 without any
  double accuracy = 0.0;  // 0 without any
  std::uint64_t undecided = 0;
  std::vector<std::vector<std::uint64_t>> confusion;  // [label][decision], outputs x outputs
  std::vector<double> activity;                       // per layer
  std::vector<double> dropped_spikes;                 // per layer: fraction that found no room under spike_budget
  double input_activity = 0.0;
  double synaptic_operations_per_sample = 0.0;
  double seconds = 0.0;
  // Per sample, in the order given.
  std::vector<int> decisions;
  std::vector<double> losses;
  std::vector<std::uint8_t> undecided_samples;
};

/// Every one of `samples`, the last partial batch too. `work` names it to the listener.
Evaluation evaluate_samples(Engine& engine, const ReadoutLoss& loss, const SpikeDataset& data,
                            std::span<const std::uint32_t> samples, int batch_size, const std::string& work,
                            ProgressListener& listener);

}  // namespace spikeloom
