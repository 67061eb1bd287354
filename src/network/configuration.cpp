// From a file and --set to a Configuration: every value goes through the table of settings and keeps the place it came
// from.
#include <spikeloom/configuration.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <spikeloom/error.hpp>
#include "network/checks.hpp"
#include "network/setting_kinds.hpp"
#include "network/settings.hpp"
#include "network/toml_file.hpp"

namespace spikeloom {
namespace {

using setting_kinds::joined;

class Loader {
 public:
  explicit Loader(std::filesystem::path file) : file_(std::move(file)) {}

  Configuration load(const std::vector<std::string>& overrides) {
    for (const TomlSection& section : read_toml_file(file_)) read_section(section);
    name_layers();
    for (const std::string& text : overrides) apply_override(text);
    fill_dependent_defaults();
    if (const auto conflict = find_conflict(configuration_))
      throw UserError(place_of(conflict->keys) + ": " + conflict->message);
    return std::move(configuration_);
  }

 private:
  std::string at_line(int line) const { return fmt::format("{}:{}", file_.string(), line); }

  void read_section(const TomlSection& section) {
    const std::vector<std::string> known = section_names();
    if (std::find(known.begin(), known.end(), section.name) == known.end()) {
      throw UserError(fmt::format("{}: unknown section [{}]; did you mean [{}]? known sections: {}",
                                  at_line(section.line), section.name, nearest_section(section.name),
                                  joined({known.begin() + 1, known.end()})));
    }
    const bool layers = section.name == "layers";
    if (layers != section.repeated) {
      throw UserError(fmt::format(
          "{}: {}", at_line(section.line),
          layers ? "a layer is written as [[layers]], in double brackets"
                 : fmt::format("the section [{0}] is written once, in single brackets: [{0}]", section.name)));
    }
    if (layers) begin_layer(section);
    for (const TomlEntry& entry : section.entries) read_entry(section, entry);
    if (layers) end_layer(section);
  }

  void begin_layer(const TomlSection& section) {
    configuration_.network.layers.emplace_back();
    places_[fmt::format("layers.{}", configuration_.network.layers.size() - 1)] = at_line(section.line);
    // The name first, so that messages about the other settings can use it.
    for (const TomlEntry& entry : section.entries) {
      if (entry.key == "name") read_entry(section, entry);
    }
  }

  void end_layer(const TomlSection& section) {
    const std::size_t index = configuration_.network.layers.size() - 1;
    if (!given("layers." + std::to_string(index) + ".size")) {
      throw UserError(fmt::format("{}: {}.size is missing: the number of neurons is required", at_line(section.line),
                                  shown_layer(index)));
    }
    constexpr std::pair<const char*, const char*> kEither[] = {
        {"decay", "tau_mem_ms"}, {"decay_syn", "tau_syn_ms"}, {"decay_adapt", "tau_adapt_ms"}};
    for (const auto& [decay, tau] : kEither) {
      const std::string key = fmt::format("layers.{}.{}", index, decay);
      if (!given(key) || !given(fmt::format("layers.{}.{}", index, tau))) continue;
      throw UserError(
          fmt::format("{}: {} has both {} and {}; give one of them", places_.at(key), shown_layer(index), decay, tau));
    }
  }

  void read_entry(const TomlSection& section, const TomlEntry& entry) {
    const bool layers = section.name == "layers";
    const std::size_t index = layers ? configuration_.network.layers.size() - 1 : 0;
    const std::string shown = layers ? shown_layer(index) : section.name;
    const std::string stored = layers ? fmt::format("layers.{}", index) : section.name;
    const Setting* setting = find_setting(section.name, entry.key);
    if (!setting) throw UserError(unknown_key(at_line(entry.line), section.name, shown, entry));
    store(*setting, entry.value,
          {at_line(entry.line), shown, stored, layers ? &configuration_.network.layers[index] : nullptr,
           file_.parent_path()});
  }

  std::string unknown_key(const std::string& place, const std::string& section, const std::string& shown,
                          const TomlEntry& entry) const {
    const std::vector<std::string> sections = section_names();
    if (section.empty() && std::find(sections.begin(), sections.end(), entry.key) != sections.end()) {
      return fmt::format("{}: {} = {} is not allowed: {} is a section, written as {}", place, entry.key,
                         to_toml_text(entry.value), entry.key,
                         entry.key == "layers" ? "[[layers]]" : "[" + entry.key + "]");
    }
    return fmt::format("{}: unknown key {} = {}; did you mean {}? known keys {}: {}", place,
                       shown.empty() ? entry.key : shown + "." + entry.key, to_toml_text(entry.value),
                       nearest_key(section, entry.key),
                       section.empty() ? std::string("outside sections") : fmt::format("of [{}]", section),
                       joined(setting_names(section)));
  }

  struct Destination {
    std::string place;   // for messages: file and line, or --set
    std::string shown;   // "layers.hidden1"
    std::string stored;  // "layers.0", the key of places_
    LayerSpec* layer = nullptr;
    std::filesystem::path base;
  };

  void store(const Setting& setting, const SettingValue& value, const Destination& to) {
    const auto dotted = [&](const std::string& section) {
      return section.empty() ? setting.name : section + "." + setting.name;
    };
    if (!setting.set({&configuration_, to.layer, to.base}, value)) {
      throw UserError(fmt::format("{}: {} = {} is not allowed: it must be {}", to.place, dotted(to.shown),
                                  to_toml_text(value), setting.allowed));
    }
    places_[dotted(to.stored)] = to.place;
  }

  void name_layers() {
    std::vector<LayerSpec>& layers = configuration_.network.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].name.empty()) layers[i].name = fmt::format("layer{}", i + 1);
    }
  }

  void apply_override(const std::string& text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw UserError(fmt::format(
          "--set {}: expected key=value, for example training.epochs=3 or layers.hidden1.threshold=1.2", text));
    }
    const std::string key = trimmed(text.substr(0, equals));
    const std::string value = trimmed(text.substr(equals + 1));
    const std::size_t last_dot = key.rfind('.');
    const std::string section = last_dot == std::string::npos ? "" : key.substr(0, last_dot);
    const std::string name = last_dot == std::string::npos ? key : key.substr(last_dot + 1);
    if (section == "data.validation" && name == "speakers")
      return override_setting("data", "validation", value, "data", nullptr, 0);
    if (section.starts_with("layers.")) {
      const std::size_t index = layer_named(section.substr(7), text);
      return override_setting("layers", name, value, section, &configuration_.network.layers[index], index);
    }
    const std::vector<std::string> known = section_names();
    if (section == "layers" || std::find(known.begin(), known.end(), section) == known.end()) {
      throw UserError(fmt::format(
          "--set {}: unknown section {}; did you mean {}? known sections: {}; layers by name: layers.NAME.key", text,
          section, section == "layers" ? "layers.NAME" : nearest_section(section),
          joined({known.begin() + 1, known.end()})));
    }
    override_setting(section, name, value, section, nullptr, 0);
  }

  void override_setting(const std::string& section, const std::string& name, const std::string& text,
                        const std::string& shown, LayerSpec* layer, std::size_t index) {
    const std::string place = "--set";
    const Setting* setting = find_setting(section, name);
    if (!setting) throw UserError(unknown_key(place, section, shown, {name, override_value(text, false), 0}));
    store(*setting, override_value(text, setting->takes_text),
          {place, shown, layer ? fmt::format("layers.{}", index) : section, layer, "."});
  }

  /// What the text of --set means: TOML, or, where that makes no sense, the text itself. Quotes are accepted around
  /// text too.
  static SettingValue override_value(const std::string& text, bool takes_text) {
    const bool quotes =
        text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front();
    if (takes_text && !quotes) return text;
    return parse_toml_value(text).value_or(SettingValue(text));
  }

  std::size_t layer_named(const std::string& name, const std::string& text) const {
    const std::vector<LayerSpec>& layers = configuration_.network.layers;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].name == name) return i;
      names.push_back(layers[i].name);
    }
    if (names.empty())
      throw UserError(fmt::format("--set {}: there is no layer {}: {} has no [[layers]]", text, name, file_.string()));
    const std::string nearest = *std::min_element(names.begin(), names.end(), [&](const auto& a, const auto& b) {
      return edit_distance(a, name) < edit_distance(b, name);
    });
    throw UserError(
        fmt::format("--set {}: there is no layer {}; did you mean {}? layers: {}", text, name, nearest, joined(names)));
  }

  void fill_dependent_defaults() {
    NetworkSpec& network = configuration_.network;
    const DataSpec& data = configuration_.data;
    network.step_ms = data.step_ms;
    network.steps = data.steps;
    network.channels = (data.channels + data.channel_bin - 1) / data.channel_bin;
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
      LayerSpec& layer = network.layers[i];
      fill_neuron(layer, [&](const char* key) { return given(fmt::format("layers.{}.{}", i, key)); });
      for (TimeConstant* constant : {&layer.membrane, &layer.synapse, &layer.adaptation}) {
        const Range& tau = constant->tau_ms;
        if (!constant->decay_given)
          constant->decay = {std::exp(-data.step_ms / tau.low), std::exp(-data.step_ms / tau.high)};
      }
      if (layer.activity_target > 0.0 && !given(fmt::format("layers.{}.init_rate", i)))
        layer.init_rate = layer.activity_target;
      fill_surrogate(layer.surrogate, given(fmt::format("layers.{}.surrogate_beta", i)),
                     given(fmt::format("layers.{}.window", i)));
    }
    if (configuration_.data.classes == 0 && !network.layers.empty()) configuration_.data.classes = network.outputs();
  }

  /// Defaults that depend on the neuron, as its authors have them.
  template <class Given>
  static void fill_neuron(LayerSpec& layer, const Given& given) {
    const NeuronKind neuron = layer.neuron;
    const bool adlif = neuron == NeuronKind::adlif || neuron == NeuronKind::se_adlif;
    const auto between_steps = [](double low, double high) {
      return TimeConstant{true, {std::exp(-1.0 / low), std::exp(-1.0 / high)}, {}};
    };
    if (neuron == NeuronKind::integrate_and_fire && !given("decay") && !given("tau_mem_ms"))
      layer.membrane = {true, 1.0, {}};
    if ((neuron == NeuronKind::alif || neuron == NeuronKind::adlif) && !given("reset"))
      layer.reset = ResetKind::subtract;
    if (!adlif) return;
    if (!given("decay") && !given("tau_mem_ms")) layer.membrane = between_steps(5.0, 25.0);
    if (!given("decay_adapt") && !given("tau_adapt_ms")) layer.adaptation = between_steps(30.0, 120.0);
    if (!given("adapt_membrane")) layer.adapt_membrane = {neuron == NeuronKind::adlif ? -1.0 : 0.0, 1.0};
    if (!given("adapt_spike")) layer.adapt_spike = {0.0, 2.0};
    if (!given("input_scaling")) layer.input_scaling = InputScaling::leak;
    if (!given("learn")) {
      layer.learn = {NeuronParameter::decay, NeuronParameter::decay_adapt, NeuronParameter::adapt_membrane,
                     NeuronParameter::adapt_spike};
    }
  }

  static void fill_surrogate(SurrogateSpec& surrogate, bool beta_given, bool window_given) {
    const SurrogateKind kind = surrogate.kind;
    if (kind == SurrogateKind::arctan && !beta_given) surrogate.beta = 2.0;
    const bool bounded =
        kind == SurrogateKind::triangle || kind == SurrogateKind::box || kind == SurrogateKind::quadratic;
    if (bounded && !window_given) {
      surrogate.window_low = -std::numeric_limits<double>::infinity();
      surrogate.window_high = std::numeric_limits<double>::infinity();
    }
  }

  bool given(const std::string& key) const { return places_.contains(key); }

  std::string shown_layer(std::size_t index) const {
    const std::string& name = configuration_.network.layers[index].name;
    return name.empty() ? fmt::format("layers[{}]", index + 1) : "layers." + name;
  }

  /// The first of the keys that was given, else the layer it belongs to, else the file.
  std::string place_of(const std::vector<std::string>& keys) const {
    for (const std::string& key : keys) {
      if (given(key)) return places_.at(key);
    }
    for (const std::string& key : keys) {
      const std::string owner = key.substr(0, key.rfind('.'));
      if (given(owner)) return places_.at(owner);
    }
    return file_.string();
  }

  static std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t");
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
  }

  std::filesystem::path file_;
  Configuration configuration_;
  std::map<std::string, std::string> places_;  // "data.steps", "layers.0.size", "layers.0" -> where it was given
};

}  // namespace

Configuration load_configuration(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  return Loader(file).load(overrides);
}

std::string to_toml(const Configuration& configuration) {
  std::string text;
  const auto write = [&](const std::string& section, const LayerSpec* layer) {
    if (!section.empty()) text += layer ? fmt::format("\n[[{}]]\n", section) : fmt::format("\n[{}]\n", section);
    for (const Setting& setting : settings()) {
      if (setting.section != section) continue;
      if (const auto value = setting.get(configuration, layer))
        text += fmt::format("{} = {}\n", setting.name, to_toml_text(*value));
    }
  };
  for (const std::string& section : section_names()) {
    if (section != "layers") {
      write(section, nullptr);
      continue;
    }
    for (const LayerSpec& layer : configuration.network.layers) write(section, &layer);
  }
  return text;
}

}  // namespace spikeloom
