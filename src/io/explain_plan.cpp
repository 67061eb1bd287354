#include "io/explain_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <spikeloom/error.hpp>
#include "core/worker_team.hpp"
#include "data/describe.hpp"
#include "io/run_data.hpp"
#include "network/neuron_constants.hpp"
#include "train/measure/measure_machine.hpp"

namespace spikeloom {
namespace {

// Where nobody says more: what the examples and the recordings that we know show.
constexpr double kUsualActivity = 0.02;

/// Neurons in the surrogate's window (low, high], in units of the threshold, when a share of them spikes: as if
/// membranes were normally distributed around 0. On the benchmark networks 1 % of spikes gave 2.0 % and 5 % gave 6.6 %;
/// this says 1.8 % and 6.9 %.
double share_in_window(double spiking, LayerSpec layer) {
  const auto above = [](double deviations) { return 0.5 * std::erfc(deviations / std::sqrt(2.0)); };
  if (spiking <= 0.0) return 0.0;
  layer.size = 1;
  const auto constants =
      neuron_constants<double>(layer, {}, std::nan(""));  // the window cut to the surrogate's support
  const double threshold = constants[NeuronConstant::threshold][0];
  const double low = constants[NeuronConstant::window_low][0] / threshold;
  const double high = constants[NeuronConstant::window_high][0] / threshold;
  double least = 0.0, most = 40.0;  // the threshold in standard deviations
  for (int i = 0; i < 60; ++i) {
    const double middle = (least + most) / 2.0;
    (above(middle) > spiking ? least : most) = middle;
  }
  return std::clamp(above(low * least) - (std::isinf(high) ? 0.0 : above(high * least)), 0.0, 1.0);
}

/// The input's activity from the data, if it is there. Fills the network's channels.
std::optional<double> activity_of_data(Configuration& configuration, ProgressListener& listener) {
  std::error_code ignored;
  if (!std::filesystem::exists(configuration.data.train, ignored)) return std::nullopt;
  const RunData data = read_run_data(configuration, listener);
  return describe(*data.train.data).activity;
}

void choose_input_activity(Configuration& configuration, const PlanRequest& request, ProgressListener& listener,
                           PlanReport& report) {
  std::optional<double> measured;
  const bool wanted = !request.input_activity || configuration.network.channels == 0;
  if (request.read_data && wanted) measured = activity_of_data(configuration, listener);
  if (configuration.network.channels == 0) {
    throw UserError(fmt::format(
        "data.channels: unknown, and {} does not exist; allowed: the number of input channels, or data that is there",
        configuration.data.train.string()));
  }
  report.work.input_activity = request.input_activity.value_or(measured.value_or(kUsualActivity));
  if (request.input_activity) return;
  if (!measured)
    report.assumed.push_back(fmt::format("input activity {}: there is no data to measure it on", kUsualActivity));
}

void choose_activities(const PlanRequest& request, PlanReport& report) {
  for (const LayerSpec& layer : report.network.layers) {
    double activity = 0.0;
    if (layer.spiking()) {
      const bool aimed = layer.init == InitKind::rate;
      activity = request.activity.value_or(aimed ? layer.init_rate : kUsualActivity);
      if (!request.activity) {
        report.assumed.push_back(fmt::format("activity {} of layer {}: {}", activity, layer.name,
                                             aimed ? "what its initialisation aims at" : "nothing is known"));
      }
    }
    report.work.activity.push_back(activity);
    report.work.active_fraction.push_back(layer.spiking() ? share_in_window(activity, layer) : 0.0);
  }
  report.assumed.push_back("neurons in the surrogate's window: as many as if membranes were normally distributed");
}

/// What the predictions leave out of a network's connections.
void say_what_is_left_out(PlanReport& report) {
  const NetworkSpec& network = report.network;
  for (const std::vector<int>& part : network.connected_parts()) {
    if (part.size() == 1) continue;
    std::vector<std::string> names;
    for (const int layer : part) names.push_back(network.layers[layer].name);
    report.assumed.push_back(fmt::format(
        "layers {}: time and memory as if they were fed forward; that feedback takes them through the steps "
        "together, with a meeting of the workers after each step of each layer, is not predicted",
        fmt::join(names, ", ")));
  }
}

double balance_of(const LayerPlan& layer, int workers) {
  const std::vector<double> tiles = tiles_per_worker(layer, workers);
  return layer.tiles / (workers * *std::max_element(tiles.begin(), tiles.end()));
}

}  // namespace

PlanReport explain_plan(Configuration configuration, const PlanRequest& request, ProgressListener& listener) {
  PlanReport report;
  choose_input_activity(configuration, request, listener, report);
  report.network = configuration.network;
  choose_activities(request, report);
  say_what_is_left_out(report);
  report.work.batch = configuration.training.batch_size;
  report.work.steps = configuration.network.steps;
  report.work.clip = configuration.optimizer.gradient_clip > 0.0;
  report.work.moments = configuration.optimizer.kind == OptimizerKind::sgd ? 1 : 2;

  const int workers = configuration.engine.threads > 0 ? configuration.engine.threads : available_cores();
  report.plan = make_plan(report.network, configuration.engine.mode, workers, configuration.engine.precision,
                          configuration.training.bptt_steps);
  report.machine = describe_machine();
  report.figures = machine_figures(report.machine, request.measure_anew);
  if (workers > static_cast<int>(report.machine.seats.size())) {
    report.assumed.push_back(fmt::format("{} cores: this process may use {}", workers, report.machine.seats.size()));
  }
  report.prediction = predict(report.network, report.plan, report.work, report.machine, report.figures);
  for (std::size_t l = 0; l < report.network.layers.size(); ++l) {
    report.dense_from.push_back(
        dense_from_activity(report.network, report.plan, l, report.work, report.machine, report.figures));
    report.tile_balance.push_back(balance_of(report.plan.layers[l], workers));
  }
  report.memory = memory_use(report.network, report.plan, report.work);
  report.limit_ns = rough_limit_ns(report.network, report.plan, report.work, report.figures);
  return report;
}

}  // namespace spikeloom
