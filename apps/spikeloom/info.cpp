// spikeloom info: what is in a run folder, a checkpoint, a configuration, or a data set.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include <spikeloom/configuration.hpp>
#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>
#include "data_report.hpp"
#include "io/safetensors.hpp"
#include "network/settings.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<std::pair<std::string, std::string>>;

struct Options {
  std::string file;
  bool json = false;
  bool settings_markdown = false;
};

std::vector<std::string> input_names(const NetworkSpec& network, std::size_t layer) {
  std::vector<std::string> names;
  for (const int source : network.sources_of(layer))
    names.push_back(source < 0 ? kDataInput : network.layers[source].name);
  return names;
}

/// Those of them that are later layers: their spikes arrive one step later.
std::vector<std::string> feedback_names(const NetworkSpec& network, std::size_t layer) {
  std::vector<std::string> names;
  for (const int source : network.sources_of(layer)) {
    if (NetworkSpec::lag_of(source, layer) > 0) names.push_back(network.layers[source].name);
  }
  return names;
}

/// Layers that feedback joins: they go through the steps together. Empty for any other layer.
std::vector<std::string> loop_names(const NetworkSpec& network, std::size_t layer) {
  for (const std::vector<int>& part : network.connected_parts()) {
    if (part.size() == 1 || std::find(part.begin(), part.end(), static_cast<int>(layer)) == part.end()) continue;
    std::vector<std::string> names;
    for (const int l : part) names.push_back(network.layers[l].name);
    return names;
  }
  return {};
}

ordered_json layers_to_json(const NetworkSpec& network) {
  ordered_json layers = ordered_json::array();
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const LayerSpec& layer = network.layers[l];
    layers.push_back({{"name", layer.name},
                      {"neuron", neuron_name(layer)},
                      {"size", layer.size},
                      {"recurrent", layer.recurrent},
                      {"inputs", input_names(network, l)},
                      {"feedback", feedback_names(network, l)},
                      {"loop", loop_names(network, l)}});
  }
  return layers;
}

/// What a layer takes: "data, hidden2 (one step later)".
std::string sources_text(const NetworkSpec& network, std::size_t layer) {
  std::vector<std::string> texts;
  for (const int source : network.sources_of(layer)) {
    const std::string name = source < 0 ? kDataInput : network.layers[source].name;
    texts.push_back(NetworkSpec::lag_of(source, layer) > 0 ? name + " (one step later)" : name);
  }
  if (network.layers[layer].recurrent) texts.push_back("itself (one step later)");
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// The graph of layers as lines, from the data up: each layer with what it takes its spikes from.
Rows layer_rows(const NetworkSpec& network) {
  std::size_t widest = 0;
  std::vector<std::string> neurons;
  for (const LayerSpec& layer : network.layers) {
    neurons.push_back(fmt::format("{} {}", layer.size, neuron_name(layer)));
    widest = std::max(widest, neurons.back().size());
  }
  Rows rows;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    rows.emplace_back("layer " + network.layers[l].name,
                      fmt::format("{:{}} <- {}", neurons[l], widest, sources_text(network, l)));
  }
  for (const std::vector<int>& part : network.connected_parts()) {
    if (part.size() > 1)
      rows.emplace_back("step by step", fmt::format("{}", fmt::join(loop_names(network, part.front()), ", ")));
  }
  return rows;
}

/// The same as comments of a configuration.
std::string graph_text(const NetworkSpec& network) {
  const Rows rows = layer_rows(network);
  std::size_t widest = 0;
  for (const auto& [name, what] : rows) widest = std::max(widest, name.size());
  std::string text;
  for (const auto& [name, what] : rows) text += fmt::format("# {:{}} {}\n", name, widest, what);
  return text;
}

/// Lines of metrics.jsonl that are whole: a run that was killed may have left half of one.
std::vector<ordered_json> read_metrics(const std::filesystem::path& file) {
  std::vector<ordered_json> epochs;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    ordered_json epoch = ordered_json::parse(line, nullptr, false);
    if (epoch.is_object()) epochs.push_back(std::move(epoch));
  }
  return epochs;
}

std::string value_text(const ordered_json& value) {
  return value.is_number_float() ? fmt::format("{:.5g}", value.get<double>())
         : value.is_string()     ? value.get<std::string>()
                                 : value.dump();
}

/// Objects become several rows: "activity hidden1".
void add_rows(Rows& rows, const std::string& name, const ordered_json& value) {
  if (!value.is_object()) {
    rows.emplace_back(name, value_text(value));
    return;
  }
  for (const auto& [key, part] : value.items()) add_rows(rows, name + " " + key, part);
}

std::string test_set(const DataSpec& data) {
  if (data.folds > 0) return fmt::format("fold {} of {} of the same", data.fold, data.folds);
  return data.test.empty() ? "nothing" : data.test.string();
}

void show_run(const std::filesystem::path& run, bool json) {
  const Configuration configuration = load_configuration(run / "config.toml");
  const std::vector<ordered_json> epochs = read_metrics(run / "metrics.jsonl");
  std::vector<std::string> checkpoints;
  for (const char* name : {"best.safetensors", "last.safetensors"}) {
    if (std::filesystem::exists(run / name)) checkpoints.push_back(name);
  }
  const ordered_json last = epochs.empty() ? ordered_json(nullptr) : epochs.back();
  if (json) {
    print_json({{"kind", "run"},
                {"path", run.string()},
                {"seed", configuration.seed},
                {"layers", layers_to_json(configuration.network)},
                {"epochs", epochs.size()},
                {"epochs_planned", configuration.training.epochs},
                {"last_epoch", last},
                {"checkpoints", checkpoints}});
    return;
  }
  Rows rows{{"run", run.string()},
            {"trained on", configuration.data.train.string()},
            {"tested on", test_set(configuration.data)},
            {"epochs", fmt::format("{} of {}", epochs.size(), configuration.training.epochs)},
            {"checkpoints", checkpoints.empty() ? "none" : fmt::format("{}", fmt::join(checkpoints, ", "))}};
  const Rows layers = layer_rows(configuration.network);
  rows.insert(rows.end(), layers.begin(), layers.end());
  if (last.is_object()) add_rows(rows, "last", last);
  print_table(rows);
}

void show_checkpoint(const std::filesystem::path& file, bool json) {
  const SafetensorsReader reader(file);
  if (json) {
    ordered_json tensors = ordered_json::object();
    for (const TensorInfo& tensor : reader.tensors())
      tensors[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}};
    print_json(
        {{"kind", "checkpoint"}, {"path", file.string()}, {"metadata", reader.metadata()}, {"tensors", tensors}});
    return;
  }
  Rows rows{{"checkpoint", file.string()}};
  for (const auto& [key, value] : reader.metadata()) {
    if (key.find('.') != std::string::npos) continue;  // the inner state of a run: --json shows it
    rows.emplace_back(key, value.size() > 100 ? value.substr(0, 97) + "..." : value);
  }
  for (const TensorInfo& tensor : reader.tensors())
    rows.emplace_back(tensor.name, tensor.dtype + " " + shape_text(tensor.shape));
  print_table(rows);
}

void show_configuration(const std::filesystem::path& file, bool json) {
  const Configuration configuration = load_configuration(file);
  if (json) {
    print_json({{"kind", "configuration"},
                {"path", file.string()},
                {"layers", layers_to_json(configuration.network)},
                {"resolved", to_toml(configuration)}});
  } else {
    print_text(graph_text(configuration.network) + to_toml(configuration));
  }
}

void show_data(const std::filesystem::path& path, bool json) {
  const ReadOptions read;
  const DatasetDescription description = describe(read_dataset(path, read));
  if (json) {
    ordered_json object{{"kind", "data"}, {"path", path.string()}};
    object.update(to_json(description));
    print_json(object);
  } else {
    print_table({{"data", path.string()}});
    print(description, read.binning);
  }
}

void show(const Options& options) {
  if (options.settings_markdown) return print_text(settings_as_markdown());
  const std::filesystem::path path = options.file;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw UserError(fmt::format(
        "{}: does not exist; expected a run folder, a checkpoint, a configuration or a data set", options.file));
  }
  const std::string extension = path.extension().string();
  if (std::filesystem::exists(path / "config.toml", error)) return show_run(path, options.json);
  if (extension == ".safetensors") return show_checkpoint(path, options.json);
  if (extension == ".toml") return show_configuration(path, options.json);
  show_data(path, options.json);
}

}  // namespace

void add_info(CLI::App& app, Action& action) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("info", "Show what is in a run folder, a checkpoint, a configuration or a data set");
  CLI::Option* file = verb->add_option("FILE", options->file, "Run folder, *.safetensors, *.toml, or data");
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  // For docs/reference/settings.md; not for users, so not in the help.
  verb->add_flag("--settings-markdown", options->settings_markdown, "")->group("");
  verb->callback([=, &action] {
    if (file->empty() && !options->settings_markdown) throw CLI::RequiredError("FILE");
    action = [options] { show(*options); };
  });
}

}  // namespace spikeloom
