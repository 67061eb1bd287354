// Checkpoints: weights in PyTorch's order, and beside them what a run needs to go on to the same bits.
//
//   <layer>.weight (N_out, N_in), <layer>.recurrent_weight (N_out, N_out),         parameters
//   <layer>.bias (N_out), <layer>.decay (N_out), <layer>.delay (N_out, whole steps)
//   optimizer.<moment>.<layer>.weight, .recurrent_weight, .bias                    moments: m and v, or momentum
//   training.fired.<layer> (N_out)                                                 neurons that spiked so far in the
//   running epoch
//   __metadata__: format, configuration (hash), and counters and sums as whole numbers and hexadecimal floats (exact)
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/safetensors.hpp"
#include "network/parameters.hpp"
#include "train/trainer.hpp"

namespace spikeloom {

/// A hash of what a configuration trains. Paths, threads and early stopping do not count, nor does the number of epochs
/// where no schedule depends on it.
std::string training_hash(const Configuration& configuration);

/// Weights, optimiser and state: what last.safetensors holds.
void write_checkpoint(const std::filesystem::path& path, const Configuration& configuration, const Engine& engine,
                      const Trainer& trainer);
/// Weights only, with the epoch and its scores: what best.safetensors holds.
void write_weights(const std::filesystem::path& path, const Configuration& configuration, const Engine& engine,
                   const TrainingState& state);

/// The parameters of every layer. Throws UserError naming the tensor that is missing, of another shape, or holds NaN,
/// a decay outside [0, 1], or a delay that is no number of steps.
Parameters read_parameters(const SafetensorsReader& file, const NetworkSpec& network);

/// Puts weights, moments and state of write_checkpoint into engine and trainer. Throws UserError if it is a checkpoint
/// of another configuration or of other data, or of weights only.
void restore_checkpoint(const SafetensorsReader& file, const Configuration& configuration, Engine& engine,
                        Trainer& trainer);

/// What was taken from a file of other weights.
struct MatchedLayers {
  std::vector<bool> weights;  // per layer: its weights were taken
  std::string text;           // what was taken and what was not, in one line
};

/// Replaces the tensors of `parameters` for which the file has one of that name and shape. Decays and delays are taken
/// only where the layer draws them: a number in the configuration stands. Throws UserError if no weights match.
MatchedLayers copy_matching_layers(const SafetensorsReader& file, const NetworkSpec& network, Parameters& parameters);

}  // namespace spikeloom
