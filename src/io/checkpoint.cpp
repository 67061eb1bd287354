#include "io/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <spikeloom/error.hpp>

#include "io/state_text.hpp"

namespace spikeloom {
namespace {

constexpr const char* kFormat = "spikeloom 1";

using Shape = std::vector<std::uint64_t>;

Shape shape_of(const NetworkSpec& network, std::size_t layer, ParameterKind kind) {
  const auto size = static_cast<std::uint64_t>(network.layers[layer].size);
  if (kind >= ParameterKind::bias) return {size};
  return {size, parameter_columns(network, layer, kind)};
}

/// The tensors of a layer's parameters: said once for writing, reading and copying. visit(layer, name, shape, values).
template <class LayerNumbers, class Visitor>
void for_each_tensor(const NetworkSpec& network, LayerNumbers& layers, Visitor visit) {
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const LayerSpec& layer = network.layers[l];
    for (const ParameterKind kind : kParameterKinds) {
      if (kind <= ParameterKind::bias && has_parameter(layer, kind))
        visit(l, fmt::format("{}.{}", layer.name, name_of(kind)), shape_of(network, l, kind), layers[l].of(kind));
    }
    for (const NeuronParameter parameter : kNeuronParameters) {
      const ParameterKind kind = kind_of(parameter);
      if (is_stored(layer, parameter))
        visit(l, fmt::format("{}.{}", layer.name, name_of(kind)), shape_of(network, l, kind), layers[l].of(kind));
    }
    if (layer.delayed())
      visit(l, layer.name + ".delay", Shape{static_cast<std::uint64_t>(layer.size)}, layers[l].delay);
  }
}

/// Every moment of every layer that the optimiser keeps.
template <class Visitor>
void for_each_moment(const NetworkSpec& network, const Optimizer& optimizer, Visitor visit) {
  for (std::size_t moment = 0; moment < optimizer.moment_names().size(); ++moment) {
    for (std::size_t l = 0; l < network.layers.size(); ++l) {
      const LayerSpec& layer = network.layers[l];
      for (const ParameterKind kind : kParameterKinds) {
        if (!has_parameter(layer, kind)) continue;
        visit(moment, static_cast<int>(l), kind,
              fmt::format("optimizer.{}.{}.{}", optimizer.moment_names()[moment], layer.name, name_of(kind)),
              shape_of(network, l, kind));
      }
    }
  }
}

void add_parameters(SafetensorsWriter& file, const Configuration& configuration, const Engine& engine) {
  Parameters parameters = engine.export_parameters();
  for_each_tensor(configuration.network, parameters.layers,
                  [&](std::size_t, const std::string& name, const Shape& shape, std::vector<float>& values) {
                    file.add(name, shape, std::move(values));
                  });
  file.set("format", kFormat);
  file.set("configuration", training_hash(configuration));
}

/// Constants of neurons outside what training keeps them in would make states grow, or not make sense.
void check_constants(const SafetensorsReader& file, const LayerSpec& layer, const LayerParameters& parameters) {
  for (const NeuronParameter parameter : kNeuronParameters) {
    const bool is_decay = parameter <= NeuronParameter::decay_adapt;
    const Range allowed = is_decay ? Range(0.0, 1.0) : Range(limits_of(layer, parameter));
    const std::vector<float>& values = parameters.of(parameter);
    const auto bad = std::find_if(values.begin(), values.end(), [&](float value) {
      return !(value >= static_cast<float>(allowed.low) && value <= static_cast<float>(allowed.high));
    });
    if (bad == values.end() || !is_stored(layer, parameter)) continue;
    throw UserError(fmt::format("{}: tensor \"{}.{}\", index {}: {}; allowed: {} to {}", file.path().string(),
                                layer.name, name_of(kind_of(parameter)), bad - values.begin(), *bad, allowed.low,
                                allowed.high));
  }
}

void check_delays(const SafetensorsReader& file, const LayerSpec& layer, const std::vector<float>& delays) {
  constexpr float kMost = 1 << 20;  // of delay_steps
  const auto bad = std::find_if(delays.begin(), delays.end(), [](float delay) {
    return !(delay >= 0.0F && delay <= kMost) || delay != std::floor(delay);
  });
  if (bad == delays.end()) return;
  throw UserError(fmt::format("{}: tensor \"{}.delay\", index {}: {}; allowed: whole numbers from 0 to {}",
                              file.path().string(), layer.name, bad - delays.begin(), *bad, kMost));
}

}  // namespace

std::string training_hash(const Configuration& configuration) {
  Configuration trained = configuration;
  trained.engine.threads = 0;
  trained.training.early_stopping = 0;
  const ScheduleKind schedule = trained.optimizer.schedule;
  if (schedule == ScheduleKind::constant || schedule == ScheduleKind::plateau) trained.training.epochs = 0;
  trained.data.train = "-";
  trained.data.test.clear();
  if (!trained.data.validation_file.empty()) trained.data.validation_file = "-";
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : to_toml(trained)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash);
}

void write_weights(const std::filesystem::path& path, const Configuration& configuration, const Engine& engine,
                   const TrainingState& state) {
  SafetensorsWriter file;
  add_parameters(file, configuration, engine);
  file.set("epoch", fmt::format("{}", state.epoch));
  if (state.best) {
    file.set("validation_accuracy", fmt::format("{}", state.best->accuracy));
    file.set("validation_loss", fmt::format("{}", state.best->loss));
  }
  file.write(path);
}

void write_checkpoint(const std::filesystem::path& path, const Configuration& configuration, const Engine& engine,
                      const Trainer& trainer) {
  const NetworkSpec& network = configuration.network;
  SafetensorsWriter file;
  add_parameters(file, configuration, engine);
  const Optimizer& optimizer = trainer.optimizer();
  for_each_moment(network, optimizer,
                  [&](std::size_t moment, int layer, ParameterKind kind, const std::string& name, const Shape& shape) {
                    file.add(name, shape,
                             engine.gather_canonical(layer, kind, optimizer.moment_blocks(moment, layer, kind)));
                  });
  const TrainingState& state = trainer.state();
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const std::vector<std::uint8_t>& fired = state.totals.fired[l];
    if (!fired.empty())
      file.add("training.fired." + network.layers[l].name, {fired.size()},
               std::vector<float>(fired.begin(), fired.end()));
  }
  file.set("training_samples", fmt::format("{}", trainer.samples()));
  for (auto& [key, value] : state_to_texts(state)) file.set(key, value);
  file.write(path);
}

Parameters read_parameters(const SafetensorsReader& file, const NetworkSpec& network) {
  Parameters parameters;
  parameters.layers.resize(network.layers.size());
  for_each_tensor(network, parameters.layers,
                  [&](std::size_t, const std::string& name, const Shape& shape, std::vector<float>& values) {
                    values = file.read(name, shape);
                  });
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    check_constants(file, network.layers[l], parameters.layers[l]);
    check_delays(file, network.layers[l], parameters.layers[l].delay);
    parameters.layers[l].decay.resize(network.layers[l].size, 0.0F);  // where the file has none
  }
  return parameters;
}

void restore_checkpoint(const SafetensorsReader& file, const Configuration& configuration, Engine& engine,
                        Trainer& trainer) {
  const NetworkSpec& network = configuration.network;
  const std::string where = file.path().string();
  const auto hash = file.metadata().find("configuration");
  if (hash == file.metadata().end())
    throw UserError(fmt::format("{}: no checkpoint of a Spikeloom run; it can't be resumed", where));
  if (hash->second != training_hash(configuration)) {
    throw UserError(fmt::format(
        "{}: was written under other settings than those of config.toml and the command line; a resumed run may only "
        "change paths, engine.threads, training.early_stopping and, with a constant or plateau schedule, "
        "training.epochs",
        where));
  }
  const auto samples = file.metadata().find("training_samples");
  if (samples == file.metadata().end() || samples->second != fmt::format("{}", trainer.samples())) {
    throw UserError(fmt::format(
        "{}: the run was trained on {} samples, and data.train now has {}; a run can only be resumed on the same data",
        where, samples == file.metadata().end() ? "an unknown number of" : samples->second, trainer.samples()));
  }
  TrainingState state = state_from_texts(file.metadata(), network.layers.size(), where);
  for (const LayerSpec& layer : network.layers) {
    std::vector<std::uint8_t>& fired = state.totals.fired.emplace_back();
    if (!layer.spiking()) continue;
    for (const float value : file.read("training.fired." + layer.name, Shape{static_cast<std::uint64_t>(layer.size)}))
      fired.push_back(value != 0.0F);
  }
  if (state.position > trainer.samples())
    throw UserError(fmt::format("{}: __metadata__, \"position\": {} is more than the {} samples", where, state.position,
                                trainer.samples()));
  engine.import_parameters(read_parameters(file, network));
  Optimizer& optimizer = trainer.optimizer();
  for_each_moment(network, optimizer,
                  [&](std::size_t moment, int layer, ParameterKind kind, const std::string& name, const Shape& shape) {
                    engine.scatter_canonical(layer, kind, file.read(name, shape),
                                             optimizer.moment_blocks(moment, layer, kind));
                  });
  trainer.restore(std::move(state));
}

MatchedLayers copy_matching_layers(const SafetensorsReader& file, const NetworkSpec& network, Parameters& parameters) {
  MatchedLayers result;
  result.weights.assign(network.layers.size(), false);
  std::vector<std::string> taken;
  std::vector<std::string> left;
  const auto take = [&](std::size_t l, const std::string& name, const Shape& shape, std::vector<float>& values) {
    const LayerSpec& layer = network.layers[l];
    // A constant that is one number in the configuration is not taken from elsewhere.
    for (const NeuronParameter parameter : kNeuronParameters) {
      if (&values == &parameters.layers[l].of(parameter) && layer.initial(parameter).one() && !layer.learns(parameter))
        return;
    }
    if (&values == &parameters.layers[l].delay && layer.delay_steps.one()) return;
    const TensorInfo* tensor = file.find(name);
    if (!tensor) return left.push_back(name + " (not in the file)");
    if (tensor->shape != shape) {
      return left.push_back(
          fmt::format("{} ({} in the file, {} here)", name, shape_text(tensor->shape), shape_text(shape)));
    }
    values = file.read(name, shape);
    if (&values == &parameters.layers[l].weight) result.weights[l] = true;
    taken.push_back(name);
  };
  for_each_tensor(network, parameters.layers, take);
  if (std::find(result.weights.begin(), result.weights.end(), true) == result.weights.end()) {
    throw UserError(fmt::format("{}: no weights match the network by name and shape; not taken: {}",
                                file.path().string(), fmt::join(left, ", ")));
  }
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    check_constants(file, network.layers[l], parameters.layers[l]);
    check_delays(file, network.layers[l], parameters.layers[l].delay);
  }
  result.text = fmt::format("{}: taken: {}", file.path().string(), fmt::join(taken, ", "));
  if (!left.empty()) result.text += fmt::format("; not taken: {}", fmt::join(left, ", "));
  return result;
}

}  // namespace spikeloom
