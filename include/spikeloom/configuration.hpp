// Everything a run is made from: the contents of a configuration file after defaults and --set.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <spikeloom/network.hpp>

namespace spikeloom {

struct DataSpec {
  std::filesystem::path train;  // resolved: relative paths are relative to the configuration file (or, from --set, to
                                // the working directory)
  std::filesystem::path test;
  double step_ms = 10.0;
  int steps = 100;
  int channels = 0;  // 0: what the format says
  int classes = 0;   // 0: the size of the last layer
  int channel_bin = 1;
  bool counts = false;  // events per channel and step instead of 0/1
  // Validation: none, a fraction of train, a file, or all samples of some speakers.
  double validation_fraction = 0.0;
  std::filesystem::path validation_file;
  std::vector<int> validation_speakers;
  // Stratified fold number `fold` (from 1) of `folds` of train is the test set; 0 = off.
  int fold = 0;
  int folds = 0;
};

/// Random changes of the training spikes, drawn anew for every sample and epoch; none by default, and none in
/// evaluation.
struct AugmentationSpec {
  int channel_shift = 0;  // channels after channel_bin; an image: along both axes
  int image_width = 0;    // channels are images of this size, row by row; 0: a line
  int image_height = 0;
  double channel_jitter = 0.0;  // standard deviation, channels
  int time_shift_steps = 0;
  Range time_stretch{1.0, 1.0};
  double drop = 0.0;  // probability
  int mask_channels = 0;
  int mask_steps = 0;
  double merge = 0.0;  // probability that a sample is merged with another of its class

  bool any() const {
    return channel_shift > 0 || channel_jitter > 0.0 || time_shift_steps > 0 || time_stretch != Range{1.0, 1.0} ||
           drop > 0.0 || mask_channels > 0 || mask_steps > 0 || merge > 0.0;
  }
};

enum class LossKind { cross_entropy, spike_count, squared_error };
enum class LossOver { steps, steps_sum, softmax_sum, mean, max, last };
enum class DecisionKind { automatic, sum, mean, max, last, majority };

struct LossSpec {
  LossKind kind = LossKind::cross_entropy;
  LossOver over = LossOver::steps;
  DecisionKind decision = DecisionKind::automatic;
  double label_smoothing = 0.0;
  double target_rate = 0.1;        // squared_error: spikes per step that the right class should reach
  double wrong_target_rate = 0.0;  // and the others
};

enum class OptimizerKind { adamw, adam, sgd };
enum class ScheduleKind { constant, cosine, one_cycle, plateau };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::adamw;
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.9;
  double weight_decay = 0.0;
  ScheduleKind schedule = ScheduleKind::constant;
  int warmup_steps = 0;
  double warmup_start = 0.0;      // fraction of the learning rate at the first step of the warm-up
  double final_fraction = 0.0;    // cosine, one_cycle: where the schedule ends, as a fraction of the learning rate
  double one_cycle_warmup = 0.3;  // fraction of all steps until the peak
  double one_cycle_start = 0.04;  // fraction of the peak at the start
  double plateau_factor = 0.5;
  int plateau_patience = 5;  // epochs without a better validation (else training) loss
  double gradient_clip = 0.0;
};

struct TrainingSpec {
  int epochs = 20;
  int batch_size = 128;
  int accumulate = 1;      // batches whose gradients make one update
  int bptt_steps = 0;      // steps of a chunk of a recording, at whose start gradients end; 0 = the whole recording
  int early_stopping = 0;  // epochs without a better validation after which training ends; 0 = never
  bool anneal_window = true;
  double anneal_start = -100.0;  // second threshold at the first batch, in units of the threshold
  double anneal_halving = 1.0;   // batches after which its distance to the target is halved
};

enum class EngineMode { automatic, sparse, dense };

/// Numbers that the kernels of spiking layers read: float32, or bf16 copies of weights and deltas.
enum class EnginePrecision { fp32, bf16 };

struct EngineSpec {
  EngineMode mode = EngineMode::automatic;
  EnginePrecision precision = EnginePrecision::fp32;
  int threads = 0;  // 0: all cores this process may use
};

struct Configuration {
  std::uint64_t seed = 1;
  DataSpec data;
  AugmentationSpec augmentation;
  NetworkSpec
      network;  // step_ms and steps are copies of data's; channels: what channel_bin leaves of data's, 0 if unknown
  LossSpec loss;
  OptimizerSpec optimizer;
  TrainingSpec training;
  EngineSpec engine;
};

/// Reads a TOML file and applies `overrides` ("key=value", e.g. "training.epochs=3", "layers.hidden1.threshold=1.2"),
/// later ones first in rank. Throws UserError naming file, line, key, value and allowed values; an unknown key also
/// names the nearest known one.
Configuration load_configuration(const std::filesystem::path& file, const std::vector<std::string>& overrides = {});

/// The whole configuration as TOML, every setting said, paths absolute: loading it again gives the same configuration.
std::string to_toml(const Configuration& configuration);

}  // namespace spikeloom
