// Files that `eval` writes beside its report.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "engine/engine.hpp"
#include "io/run_data.hpp"
#include "train/evaluate.hpp"

namespace spikeloom {

/// CSV with a heading: sample (index in the data), label, decision, undecided (0 or 1), loss.
void write_predictions(const std::filesystem::path& path, const DataSelection& selection, const Evaluation& evaluation);

/// What LAYER.spikes or LAYER.membrane means in a network.
struct RecordRequest {
  int layer = 0;
  bool spikes = false;  // else membrane
};

/// Throws UserError naming the layers: an unknown layer, an unknown quantity, or spikes of a layer that does not spike.
RecordRequest parse_record_request(const NetworkSpec& network, const std::string& text);

/// spikes: CSV with a heading: sample, step, neuron. membrane: NumPy's .npy, float32 (samples, steps, neurons).
void write_record(const std::filesystem::path& path, const RecordRequest& request, Engine& engine,
                  const DataSelection& selection, ProgressListener& listener);

}  // namespace spikeloom
