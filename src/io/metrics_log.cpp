#include "io/metrics_log.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "data/durable_file.hpp"

namespace spikeloom {
namespace {

using Json = nlohmann::ordered_json;

/// The epoch that a line is of; 0 if it is no such line.
int epoch_of(const std::string& line) {
  const Json object = Json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("epoch") || !object["epoch"].is_number_integer()) return 0;
  return object["epoch"].get<int>();
}

template <class Value>
Json by_layer(const NetworkSpec& network, const std::vector<Value>& values, bool spiking_only) {
  Json object = Json::object();
  for (std::size_t l = 0; l < values.size(); ++l) {
    if (!spiking_only || network.layers[l].spiking()) object[network.layers[l].name] = values[l];
  }
  return object;
}

bool any_layer(const NetworkSpec& network, bool (*holds)(const LayerSpec&)) {
  return std::any_of(network.layers.begin(), network.layers.end(), holds);
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, int epochs) : path_(std::move(path)) {
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line);) {
    const int epoch = epoch_of(line);
    if (epoch >= 1 && epoch <= epochs) lines_.push_back(line);
  }
  write();
}

void MetricsLog::append(const NetworkSpec& network, const EpochSummary& summary,
                        const std::optional<Evaluation>& validation) {
  const EpochTotals& totals = summary.totals;
  Json line = {{"epoch", summary.epoch},
               {"train_loss", summary.loss},
               {"train_accuracy", summary.accuracy},
               {"train_undecided", totals.undecided},
               {"regulariser", summary.regulariser}};
  if (validation) {
    line["validation_loss"] = validation->loss;
    line["validation_accuracy"] = validation->accuracy;
    line["validation_undecided"] = validation->undecided;
  }
  line["learning_rate"] = summary.learning_rate;
  line["samples"] = totals.samples;
  line["samples_per_second"] = summary.samples_per_second;
  line["input_activity"] = totals.input_activity;
  line["activity"] = by_layer(network, totals.activity, true);
  line["active_fraction"] = by_layer(network, totals.active_fraction, true);
  line["never_fired"] = by_layer(network, summary.never_fired, true);
  if (any_layer(network, [](const LayerSpec& layer) { return layer.activity_target > 0.0; }))
    line["rate_cost"] = by_layer(network, summary.rate_costs, true);
  if (any_layer(network, [](const LayerSpec& layer) { return layer.rescue_active > 0.0; }))
    line["window_low"] = by_layer(network, summary.window_low, true);
  if (any_layer(network, [](const LayerSpec& layer) { return layer.spike_budget > 0; })) {
    line["dropped_spikes"] = by_layer(network, summary.dropped_spikes, true);
    line["dropped_gradients"] = by_layer(network, summary.dropped_gradients, true);
  }
  line["dense_forward"] = by_layer(network, totals.dense_forward, false);
  line["dense_backward"] = by_layer(network, totals.dense_backward, false);
  line["saved_state_bytes"] = totals.saved_state_bytes;
  line["seconds"] = {{"total", totals.seconds},
                     {"forward", totals.forward_seconds},
                     {"backward", totals.backward_seconds},
                     {"update", totals.update_seconds},
                     {"data", totals.data_seconds},
                     {"validation", validation ? validation->seconds : 0.0}};
  lines_.push_back(line.dump());
  write();
}

void MetricsLog::write() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  DurableFile file(path_);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace spikeloom
