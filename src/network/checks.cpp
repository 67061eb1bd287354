#include "network/checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include <spikeloom/error.hpp>
#include "network/parameters.hpp"
#include "network/settings.hpp"

namespace spikeloom {
namespace {

std::string layer_key(std::size_t layer, std::string_view name) { return fmt::format("layers.{}.{}", layer, name); }

/// Position in a stack: spiking layers, then a leaky integrator, then a linear one.
int rank_of(NeuronKind kind) { return kind == NeuronKind::linear ? 2 : kind == NeuronKind::leaky_integrator ? 1 : 0; }

std::optional<Conflict> check_order(const NetworkSpec& network) {
  for (std::size_t i = 1; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    const LayerSpec& below = network.layers[i - 1];
    if (rank_of(below.neuron) == 0 || rank_of(layer.neuron) > rank_of(below.neuron)) continue;
    return Conflict{{layer_key(i, "neuron"), layer_key(i - 1, "neuron")},
                    fmt::format("layer {} ({}) follows layer {} ({}): layers that spike come first, then at most one "
                                "li, then at most one linear",
                                layer.name, neuron_name(layer), below.name, neuron_name(below))};
  }
  return std::nullopt;
}

std::optional<Conflict> check_names(const NetworkSpec& network) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const std::string& name = network.layers[i].name;
    if (!seen.insert(name).second) {
      return Conflict{{layer_key(i, "name")},
                      fmt::format("layers.{0}: the name {0} is taken by an earlier layer; names must differ", name)};
    }
  }
  return std::nullopt;
}

/// Inputs are the data and other layers, each once.
std::optional<Conflict> check_input_names(const NetworkSpec& network) {
  std::set<std::string> names;
  for (const LayerSpec& layer : network.layers) names.insert(layer.name);
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    const auto conflict = [&](const std::string& text) {
      return Conflict{{layer_key(i, "inputs")}, fmt::format("layers.{}.inputs: {}", layer.name, text)};
    };
    std::set<std::string> own;
    for (const std::string& name : layer.inputs) {
      if (!own.insert(name).second) return conflict(fmt::format("{} is named twice", name));
      if (name == kDataInput && names.contains(name))
        return conflict(fmt::format("{0} is the data, but there is a layer of that name, too: rename the layer", name));
      if (name == layer.name)
        return conflict(fmt::format("{} names itself: recurrent = true gives a layer its own spikes", name));
      if (name != kDataInput && !names.contains(name)) {
        std::set<std::string> others;
        for (const LayerSpec& other : network.layers) {
          if (other.spiking() && other.name != layer.name) others.insert(other.name);
        }
        return conflict(fmt::format("{} is no layer; allowed: {}{}", name, kDataInput,
                                    others.empty() ? "" : fmt::format(", {}", fmt::join(others, ", "))));
      }
    }
  }
  return std::nullopt;
}

/// What layers name as inputs spikes, and counts the same for all that a layer names.
std::optional<Conflict> check_inputs(const NetworkSpec& network) {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    if (layer.inputs.empty()) continue;
    const auto conflict = [&](const std::string& text) {
      return Conflict{{layer_key(i, "inputs")}, fmt::format("layers.{}.inputs: {}", layer.name, text)};
    };
    double dropout = -1.0;
    for (const int source : network.sources_of(i)) {
      const LayerSpec* from = source < 0 ? nullptr : &network.layers[source];
      if (from && !from->spiking())
        return conflict(fmt::format("{} does not spike: what it gives goes to the layer after it alone", from->name));
      const double of_source = from ? from->dropout : 0.0;
      if (dropout >= 0.0 && of_source != dropout)
        return conflict("all of them must have the same dropout (the data have none)");
      dropout = of_source;
    }
    if (i > 0 && !network.layers[i - 1].spiking()) {
      return conflict(fmt::format("a layer after one that does not spike ({}) takes its membranes: set inputs = []",
                                  network.layers[i - 1].name));
    }
  }
  return std::nullopt;
}

/// The data reach every layer, and every layer the last one.
std::optional<Conflict> check_reach(const NetworkSpec& network) {
  const std::size_t count = network.layers.size();
  std::vector<bool> used(count, false), reaches_last(count, false), reached(count, false);
  reaches_last.back() = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = count; i-- > 0;) {
      for (const int source : network.sources_of(i)) {
        const bool of_data = source < 0 || reached[source];
        if (of_data && !reached[i]) changed = reached[i] = true;
        if (source < 0) continue;
        used[source] = true;
        if (reaches_last[i] && !reaches_last[source]) changed = reaches_last[source] = true;
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& name = network.layers[i].name;
    if (!reached[i]) {
      return Conflict{{layer_key(i, "inputs")},
                      fmt::format("layers.{0}.inputs: no spike of the data reaches {0}: name {1} among the inputs of "
                                  "it, or of a layer that it takes spikes from",
                                  name, kDataInput)};
    }
    if (reaches_last[i]) continue;
    return Conflict{{layer_key(i + 1, "inputs"), layer_key(i, "name")},
                    used[i]
                        ? fmt::format("layers.{0}: its spikes do not reach the last layer, {1}, so nothing would "
                                      "train it: name {0} among the inputs of {1} or of a layer on the way to it",
                                      name, network.layers.back().name)
                        : fmt::format("layers.{0}: no layer takes its spikes: name {0} among the inputs of one", name)};
  }
  return std::nullopt;
}

/// Layers that feedback joins exchange their spikes from step to step: whole lists, as they are.
std::optional<Conflict> check_feedback(const NetworkSpec& network) {
  for (const std::vector<int>& part : network.connected_parts()) {
    if (part.size() == 1) continue;
    for (const int i : part) {
      const LayerSpec& layer = network.layers[i];
      const char* setting = layer.spike_budget > 0 ? "spike_budget" : layer.delayed() ? "delay_steps" : nullptr;
      if (!setting) continue;
      std::vector<std::string> names;
      for (const int member : part) names.push_back(network.layers[member].name);
      return Conflict{{layer_key(i, setting), layer_key(i, "inputs")},
                      fmt::format("layers.{0}.{1} changes when or which spikes of {0} arrive; the lists of layers that "
                                  "feedback joins ({2}) are exchanged step by step, as they are: set {1} = 0",
                                  layer.name, setting, fmt::join(names, ", "))};
    }
  }
  return std::nullopt;
}

/// Networks made by a program have not gone through the parser: hold every value against the table.
std::optional<Conflict> check_values(const NetworkSpec& network) {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    LayerSpec scratch;
    const SettingTarget target{nullptr, &scratch, {}};
    for (const Setting& setting : settings()) {
      if (setting.section != "layers") continue;
      const std::optional<SettingValue> value = setting.get(Configuration{}, &layer);
      if (!value || setting.set(target, *value)) continue;
      return Conflict{{layer_key(i, setting.name)},
                      fmt::format("layers.{}.{} = {} is not allowed: it must be {}",
                                  layer.name.empty() ? std::to_string(i + 1) : layer.name, setting.name,
                                  to_toml_text(*value), setting.allowed)};
    }
  }
  return std::nullopt;
}

std::optional<Conflict> check_recurrence(const NetworkSpec& network) {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    if (!layer.recurrent || layer.spiking()) continue;
    return Conflict{{layer_key(i, "recurrent"), layer_key(i, "neuron")},
                    fmt::format("layers.{0}: recurrent = true needs a layer that spikes (neuron = \"lif\" or another "
                                "model), but {0} is {1}",
                                layer.name, neuron_name(layer))};
  }
  return std::nullopt;
}

std::optional<Conflict> check_neurons(const NetworkSpec& network) {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    const std::string neuron = neuron_name(layer);
    for (const NeuronParameter parameter : layer.learn) {
      if (layer.spiking() && has_constant(layer.neuron, parameter)) continue;
      return Conflict{{layer_key(i, "learn"), layer_key(i, "neuron")},
                      fmt::format("layers.{}.learn: {} neurons have no {} to learn", layer.name, neuron,
                                  name_of(kind_of(parameter)))};
    }
    if (layer.neuron == NeuronKind::alif && layer.reset_gradient) {
      return Conflict{{layer_key(i, "reset_gradient"), layer_key(i, "neuron")},
                      fmt::format("layers.{}.reset_gradient = true: alif holds its reset constant in the backward pass",
                                  layer.name)};
    }
    if (layer.neuron == NeuronKind::se_adlif && layer.reset == ResetKind::subtract_after_decay) {
      return Conflict{{layer_key(i, "reset"), layer_key(i, "neuron")},
                      fmt::format("layers.{}.reset = \"subtract_after_decay\": se_adlif couples to the membrane that "
                                  "the reset leaves; allowed: zero, subtract, none",
                                  layer.name)};
    }
    if (layer.neuron == NeuronKind::integrate_and_fire && layer.input_scaling == InputScaling::leak) {
      return Conflict{{layer_key(i, "input_scaling"), layer_key(i, "neuron")},
                      fmt::format("layers.{}.input_scaling = \"leak\": if neurons do not leak, so their input would "
                                  "be 0; allowed: none",
                                  layer.name)};
    }
  }
  return std::nullopt;
}

std::optional<Conflict> check_rates(const NetworkSpec& network) {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    if (layer.rate_lower <= layer.rate_upper) continue;
    return Conflict{{layer_key(i, "rate_lower"), layer_key(i, "rate_upper")},
                    fmt::format("layers.{}: rate_lower = {} is above rate_upper = {}", layer.name, layer.rate_lower,
                                layer.rate_upper)};
  }
  return std::nullopt;
}

std::optional<Conflict> check_activity(const NetworkSpec& network) {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    const SurrogateKind surrogate = layer.surrogate.kind;
    if (layer.activity_target > 0.0 && !layer.spiking()) {
      return Conflict{{layer_key(i, "activity_target")},
                      fmt::format("layers.{}.activity_target needs a layer that spikes", layer.name)};
    }
    const bool unbounded = surrogate == SurrogateKind::superspike || surrogate == SurrogateKind::arctan;
    if (layer.rescue_active > 0.0 && !(layer.spiking() && unbounded)) {
      return Conflict{
          {layer_key(i, "rescue_active"), layer_key(i, "surrogate")},
          fmt::format("layers.{}.rescue_active widens the window of a surrogate that has no end of its own: "
                      "it needs neurons that spike and surrogate = \"superspike\" or \"arctan\"",
                      layer.name)};
    }
  }
  return std::nullopt;
}

/// What happens to spikes on their way to the next layer needs spikes, and a next layer.
std::optional<Conflict> check_outgoing(const NetworkSpec& network) {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    const auto conflict = [&](std::string_view setting, std::string_view other, const std::string& why) {
      return Conflict{{layer_key(i, setting), layer_key(i, other)},
                      fmt::format("layers.{}.{} {}", layer.name, setting, why)};
    };
    for (const auto& [setting, given] :
         {std::pair{"spike_budget", layer.spike_budget > 0}, std::pair{"dropout", layer.dropout > 0.0},
          std::pair{"delay_steps", layer.delayed()}}) {
      if (!given) continue;
      if (!layer.spiking()) {
        return conflict(setting, "neuron",
                        fmt::format("needs a layer that spikes, but {} is {}", layer.name, neuron_name(layer)));
      }
      if (i + 1 == network.layers.size())
        return conflict(setting, "name", fmt::format("needs a layer after {}, which is the last one", layer.name));
    }
    if (layer.spike_budget > 0 && layer.recurrent) {
      return conflict("spike_budget", "recurrent",
                      "limits the list that goes to the next layer; the lists of a recurrent layer go back to itself, "
                      "too, and have no limit: set recurrent = false or spike_budget = 0");
    }
    if (network.steps > 0 && layer.delay_steps.low >= network.steps) {
      return conflict("delay_steps", "name",
                      fmt::format("of {} lets no spike arrive within the {} steps of a sample (data.steps)",
                                  layer.delay_steps.low, network.steps));
    }
  }
  return std::nullopt;
}

std::optional<Conflict> check_training(const Configuration& configuration) {
  const DataSpec& data = configuration.data;
  const bool validated =
      data.validation_fraction > 0.0 || !data.validation_file.empty() || !data.validation_speakers.empty();
  if (configuration.training.early_stopping == 0 || validated) return std::nullopt;
  return Conflict{{"training.early_stopping", "data.validation"},
                  fmt::format("training.early_stopping = {} needs a validation set: set data.validation",
                              configuration.training.early_stopping)};
}

/// A spike that arrives in a later chunk takes no gradient back; and what feedback has under way at a chunk's end is
/// not carried to the next.
std::optional<Conflict> check_truncation(const Configuration& configuration) {
  const int chunk = configuration.training.bptt_steps;
  const NetworkSpec& network = configuration.network;
  if (chunk == 0 || chunk >= network.steps) return std::nullopt;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    for (const int source : network.sources_of(i)) {
      if (NetworkSpec::lag_of(source, i) == 0) continue;
      return Conflict{
          {"training.bptt_steps", layer_key(i, "inputs")},
          fmt::format("training.bptt_steps = {} cuts recordings into chunks, across which feedback (layers.{}.inputs "
                      "names {}, a later layer) is not carried: set it to 0",
                      chunk, network.layers[i].name, network.layers[source].name)};
    }
  }
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const LayerSpec& layer = network.layers[i];
    if (layer.delay_steps.low < chunk) continue;
    return Conflict{
        {"training.bptt_steps", layer_key(i, "delay_steps")},
        fmt::format("training.bptt_steps = {} lets no gradient reach layer {}, whose spikes arrive {} steps "
                    "later or more (layers.{}.delay_steps): it must be more than that, or 0",
                    chunk, layer.name, layer.delay_steps.low, layer.name)};
  }
  return std::nullopt;
}

std::optional<Conflict> check_data(const Configuration& configuration) {
  const DataSpec& data = configuration.data;
  if (data.train.empty()) return Conflict{{"data.train"}, "data.train is missing: a path to training data is required"};
  if (data.folds > 0 && !data.test.empty()) {
    return Conflict{
        {"data.fold", "data.test"},
        fmt::format(
            "data.fold = \"{}/{}\" makes the test set from data.train, but data.test is given too: give one of them "
            "(data.test = \"\" is none)",
            data.fold, data.folds)};
  }
  if (data.classes > configuration.network.outputs()) {
    return Conflict{{"data.classes", layer_key(configuration.network.layers.size() - 1, "size")},
                    fmt::format("data.classes = {} is more than the {} neurons of the last layer, {}", data.classes,
                                configuration.network.outputs(), configuration.network.layers.back().name)};
  }
  return std::nullopt;
}

std::optional<Conflict> check_loss(const Configuration& configuration) {
  return find_conflict(configuration.loss, configuration.network);
}

}  // namespace

std::optional<Conflict> find_conflict(const NetworkSpec& network) {
  if (network.layers.empty()) return Conflict{{}, "no layers: at least one [[layers]] is required"};
  for (const auto check :
       {check_values, check_names, check_order, check_input_names, check_inputs, check_reach, check_feedback,
        check_recurrence, check_neurons, check_rates, check_activity, check_outgoing}) {
    if (auto conflict = check(network)) return conflict;
  }
  return std::nullopt;
}

std::optional<Conflict> find_conflict(const LossSpec& loss, const NetworkSpec& network) {
  const LayerSpec& last = network.layers.back();
  const std::string last_key = layer_key(network.layers.size() - 1, "neuron");
  if (loss.kind == LossKind::cross_entropy && last.spiking()) {
    return Conflict{{"loss.kind", last_key},
                    fmt::format("loss.kind = \"cross_entropy\" needs a last layer that does not spike (neuron = \"li\" "
                                "or \"linear\"), but {} is {}; "
                                "for spikes there are spike_count and squared_error",
                                last.name, neuron_name(last))};
  }
  if (loss.kind == LossKind::spike_count && !last.spiking()) {
    return Conflict{
        {"loss.kind", last_key},
        fmt::format("loss.kind = \"spike_count\" needs a last layer that spikes (neuron = \"lif\"), but {} is {}; "
                    "for membranes there are cross_entropy and squared_error",
                    last.name, neuron_name(last))};
  }
  const bool counted = loss.decision == DecisionKind::automatic || loss.decision == DecisionKind::sum ||
                       loss.decision == DecisionKind::mean;
  if (last.spiking() && !counted) {
    return Conflict{
        {"loss.decision", "loss.kind"},
        "loss.decision must be auto, sum or mean where the last layer spikes: the class of most spikes is chosen"};
  }
  return std::nullopt;
}

std::optional<Conflict> find_conflict(const Configuration& configuration) {
  if (auto conflict = find_conflict(configuration.network)) return conflict;
  for (const auto check : {check_data, check_loss, check_training, check_truncation}) {
    if (auto conflict = check(configuration)) return conflict;
  }
  return std::nullopt;
}

void validate(const NetworkSpec& network) {
  if (const auto conflict = find_conflict(network)) throw UserError(conflict->message);
}

}  // namespace spikeloom
