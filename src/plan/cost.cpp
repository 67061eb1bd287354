#include "plan/cost.hpp"

#include <algorithm>
#include <cmath>

#include "plan/mode_choice.hpp"

namespace spikeloom {
namespace {

constexpr double kFloat = sizeof(float);

/// The numbers of one layer that every term needs.
struct Shape {
  Shape(const NetworkSpec& network, const Plan& plan, std::size_t l, const Workload& work,
        const MachineFigures& figures)
      : layer(plan.layers[l]),
        costs(figures.of_width(layer.tile_width, layer.half_rows)),
        number_bytes(layer.half_rows ? 2.0 : kFloat),
        inputs(network.inputs_of(l)),
        width(layer.tile_width),
        tiles(layer.tiles),
        spiking(network.layers[l].spiking()),
        first(l == 0),
        after_spikes(l == 0 || network.layers[l - 1].spiking()),
        rows(work.rows()),
        events(work.input_of(l) * inputs),
        active_below(first ? 0.0 : std::max(work.active_fraction[l - 1], work.activity[l - 1]) * inputs),
        entries(std::max(work.activity[l], work.active_fraction[l]) * network.layers[l].size / tiles) {}

  double stride() const { return static_cast<double>(tiles) * width; }
  double tile_bytes() const { return static_cast<double>(inputs) * width * number_bytes; }  // that the list passes read
  double parameters() const { return stride() * inputs; }

  const LayerPlan& layer;
  const TileCosts& costs;
  double number_bytes;  // of a weight or delta as the list passes read it
  double inputs;
  double width;
  int tiles;
  bool spiking;
  bool first;
  bool after_spikes;    // fed by lists; else by the membranes of the layer below
  double rows;          // (sample, step) of a batch
  double events;        // input spikes per row
  double active_below;  // active neurons of the layer below per row; 0 for the first layer
  double entries;       // per row that a tile lists
};

/// The busiest worker's part of the layer.
double tile_share(const LayerPlan& layer, int workers) {
  const std::vector<double> tiles = tiles_per_worker(layer, workers);
  return *std::max_element(tiles.begin(), tiles.end()) / layer.tiles;
}

/// The same for items handed out one by one.
double item_share(double items, int workers) { return std::ceil(items / workers) / std::max(items, 1.0); }

double layer_bytes(const NetworkSpec& network, const Plan& plan, std::size_t l) {
  return kFloat * network.inputs_of(l) * plan.layers[l].tile_width * plan.layers[l].tiles;
}

/// Bytes that a training step passes by: between two uses of a tile everything else has been through the caches.
double footprint(const NetworkSpec& network, const Plan& plan, const Workload& work) {
  double bytes = 0.0;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) bytes += layer_bytes(network, plan, l) * (1.0 + work.moments);
  return bytes;
}

/// Nanoseconds to bring `bytes` of weights from where the last batch left them, beyond what reading them from L2 takes.
double fetch_ns(double bytes, double footprint_bytes, const Machine& machine, const MachineFigures& f) {
  if (footprint_bytes <= static_cast<double>(machine.l2_bytes) || f.row_ns.x.empty()) return 0.0;
  constexpr double kRowBytes = 256.0;
  return bytes / kRowBytes * std::max(0.0, f.row_ns.at_most_last(footprint_bytes) - f.row_ns.y.front());
}

double samples_per_range(const Plan& plan, const Workload& work) {
  return std::clamp(plan.delta_rows / work.steps, 1, work.batch);
}

double update_ns_per_parameter(const NetworkSpec& network, const Plan& plan, const Workload& work,
                               const MachineFigures& f) {
  const double bytes = footprint(network, plan, work);
  const double alone = f.adam_ns.at_most_last(bytes);
  // SGD keeps one array less, and the update is bound by memory.
  const double arrays = (1.0 + work.moments) / 3.0;
  if (plan.workers <= 1 || f.workers <= 1) return arrays * alone;
  const double all = std::max(alone, f.adam_all_ns.at_most_last(bytes));
  const double share = std::min(1.0, (plan.workers - 1.0) / (f.workers - 1.0));
  return arrays * (alone + share * (all - alone));
}

/// Sparse passes over one tile of a spiking layer; nanoseconds of all tiles on one core.
double forward_tiles(const Shape& s, double footprint_bytes, const Machine& machine, const MachineFigures& f) {
  const double rows_ns = s.costs.forward_rows.at(s.events) * s.costs.forward_factor.at_most_last(s.tile_bytes());
  const double per_step = s.spiking ? s.costs.forward_step.at(s.entries) : s.costs.membrane_step_ns;
  const double touched = std::min(1.0, s.rows * s.events / s.inputs);
  return s.tiles * (s.rows * (per_step + rows_ns) + fetch_ns(touched * s.tile_bytes(), footprint_bytes, machine, f));
}

double input_gradient_tiles(const Shape& s, double footprint_bytes, const Machine& machine, const MachineFigures& f) {
  if (s.first) return 0.0;
  const double ns = s.costs.input_rows.at(s.active_below) * s.costs.input_factor.at_most_last(s.tile_bytes());
  return s.tiles * (s.rows * ns + fetch_ns(s.tile_bytes(), footprint_bytes, machine, f));
}

/// How much of a tile's gradient has left L2 by the time it is wanted again: weights, gradient and deltas share the
/// cache with everything else, which begins to show at 60 % (2312 inputs and 2 MB of L2 still fit, 4096 do not).
double spilled_share(const Shape& s, double range_rows, const Machine& machine) {
  const double l2 = static_cast<double>(machine.l2_bytes);
  if (l2 <= 0.0) return 0.0;
  const double used = s.tile_bytes() + s.inputs * s.width * kFloat + range_rows * s.width * s.number_bytes;
  return std::clamp((used / l2 - 0.6) / 0.4, 0.0, 1.0);
}

double weight_gradient_tiles(const Shape& s, double range_rows, double ranges, const Machine& machine,
                             const MachineFigures& f) {
  const double per_input = s.events / s.inputs * range_rows;
  const double adding =
      s.costs.weight_rows.at(per_input) * s.costs.weight_factor.at_most_last(range_rows * s.width * s.number_bytes);
  // Rows of the gradient that are touched are read and written.
  const double touched = 2.0 * (1.0 - std::exp(-per_input)) * s.width * kFloat;
  const double spilled = spilled_share(s, range_rows, machine) *
                         fetch_ns(touched, 4.0 * static_cast<double>(machine.l2_bytes), machine, f);
  const double clearing = 0.5 * s.width * f.copy_ns;
  return s.tiles * s.inputs * (ranges * (adding + spilled) + clearing);
}

/// Lists of the backward pass of a layer: sorting its input, listing the active below, adding and handing back.
double backward_lists(const Shape& s, const Plan& plan, const Workload& work, double ranges, const MachineFigures& f,
                      int tiles_below) {
  const double sorting = ranges * s.inputs * f.transpose_input_ns + s.rows * s.events * f.transpose_event_ns;
  double ns = sorting * item_share(ranges, plan.workers);
  if (s.first) return ns;
  const double active = s.rows * s.active_below;
  const double back = active * (s.tiles * f.add_partial_ns + f.distribute_event_ns);
  const double listing = s.rows * tiles_below * f.merge_row_ns + active * f.merge_entry_ns;
  return ns + (back + listing) * item_share(work.batch, plan.workers);
}

/// The last layer (and a leaky integrator below a linear one): samples are shared, not tiles; the loss is in it.
LayerCost readout_cost(const NetworkSpec& network, const Plan& plan, const Shape& s, std::size_t l,
                       const Workload& work, const Machine& machine, const MachineFigures& f) {
  LayerCost cost;
  const double bytes = footprint(network, plan, work);
  const double by_sample = item_share(work.batch, plan.workers);
  const double range = samples_per_range(plan, work), ranges = std::ceil(work.batch / range);
  const bool last = l + 1 == network.layers.size();
  cost.forward = by_sample * forward_tiles(s, bytes, machine, f);
  if (last) cost.forward += by_sample * s.rows * (f.loss_step_ns + f.loss_output_ns * network.layers[l].size);
  if (s.after_spikes) {
    cost.input_gradient = by_sample * input_gradient_tiles(s, bytes, machine, f);
    const int tiles_below = s.first ? 0 : plan.layers[l - 1].tiles;
    cost.lists = backward_lists(s, plan, work, ranges, f, tiles_below);
    const double items = std::ceil(s.inputs / 64.0);
    cost.weight_gradient =
        weight_gradient_tiles(s, range * work.steps, ranges, machine, f) * item_share(items, plan.workers);
  } else {
    // Dense inputs: one multiply-add row per input, forward, back and for the weights.
    const double products = s.rows * s.inputs * s.tiles * s.width * kFloat / f.l1_bandwidth;
    cost.forward += by_sample * products;
    cost.input_gradient = by_sample * products;
    cost.weight_gradient = by_sample * products;
  }
  cost.lists += 4.0 * f.barrier_ns;
  cost.update = s.parameters() * update_ns_per_parameter(network, plan, work, f);  // by one worker
  return cost;
}

}  // namespace

LayerCost sparse_cost(const NetworkSpec& network, const Plan& plan, std::size_t l, const Workload& work,
                      const Machine& machine, const MachineFigures& f) {
  const Shape s(network, plan, l, work, f);
  if (!s.spiking) return readout_cost(network, plan, s, l, work, machine, f);
  LayerCost cost;
  const double bytes = footprint(network, plan, work);
  const double share = tile_share(s.layer, plan.workers);
  const double range = samples_per_range(plan, work), ranges = std::ceil(work.batch / range);
  cost.forward = share * forward_tiles(s, bytes, machine, f) + f.barrier_ns;
  cost.merge =
      item_share(work.batch, plan.workers) * s.rows * s.tiles * (f.merge_row_ns + s.entries * f.merge_entry_ns) +
      f.barrier_ns;
  cost.delta = share * s.tiles * s.rows * s.costs.delta_step.at(s.entries);
  cost.input_gradient = share * input_gradient_tiles(s, bytes, machine, f);
  cost.weight_gradient = share * weight_gradient_tiles(s, range * work.steps, ranges, machine, f);
  cost.lists = backward_lists(s, plan, work, ranges, f, s.first ? 0 : plan.layers[l - 1].tiles) + 3.0 * f.barrier_ns;
  cost.update = share * s.parameters() * update_ns_per_parameter(network, plan, work, f);
  if (work.clip) cost.update += share * s.parameters() * 3.0 * kFloat / f.l3_bandwidth;
  return cost;
}

LayerCost dense_cost(const NetworkSpec& network, const Plan& plan, std::size_t l, const Workload& work,
                     const Machine& machine, const MachineFigures& f) {
  const Shape s(network, plan, l, work, f);
  LayerCost cost = sparse_cost(network, plan, l, work, machine, f);
  if (!s.spiking) return cost;
  cost.forward_dense = cost.backward_dense = true;
  constexpr double kTilesPerBlock = 4.0;  // src/engine/dense.cpp
  const double tiles = tile_share(s.layer, plan.workers);
  const double blocks = item_share(std::ceil(s.tiles / kTilesPerBlock), plan.workers);
  const double samples = item_share(work.batch, plan.workers);
  const double gather = tiles * s.parameters() * f.copy_ns;
  const double densify = samples * s.rows * (s.inputs * f.copy_ns + s.events * f.transpose_event_ns);
  const double operations = 2.0 * s.rows * s.inputs * s.stride();
  cost.forward = gather + densify + blocks * operations / f.gemm_forward +
                 blocks * s.rows * s.tiles * (s.costs.forward_step.at(s.entries) + s.width * f.copy_ns);
  cost.weight_gradient = blocks * operations / f.gemm_weight_gradient + tiles * s.parameters() * f.copy_ns;
  cost.input_gradient = s.first ? 0.0 : blocks * operations / f.gemm_input_gradient;
  cost.lists = densify + (s.first ? 0.0 : gather + samples * s.rows * s.active_below * f.distribute_event_ns);
  return cost;
}

Workload of_chunk(const Plan& plan, Workload recording) {
  if (plan.bptt_steps == 0 || plan.bptt_steps >= recording.steps) return recording;
  recording.steps = plan.bptt_steps;
  return recording;
}

namespace {

/// A chunk's cost becomes that of so many: each goes forward twice, and its gradients are added to those before.
void repeat(LayerCost& cost, double chunks, bool spiking, double add_up) {
  const double forward = spiking ? 2.0 * chunks : chunks;
  cost.forward *= forward;
  cost.merge *= forward;
  for (double* once : {&cost.delta, &cost.input_gradient, &cost.weight_gradient, &cost.lists}) *once *= chunks;
  cost.update += chunks * add_up;
}

}  // namespace

Prediction predict(const NetworkSpec& network, const Plan& plan, const Workload& recording, const Machine& machine,
                   const MachineFigures& f) {
  Prediction result;
  const Workload work = of_chunk(plan, recording);
  const double chunks = static_cast<double>(recording.steps) / work.steps;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const bool spiking = network.layers[l].spiking();
    LayerCost cost = sparse_cost(network, plan, l, work, machine, f);
    if (spiking) {
      const LayerCost dense = dense_cost(network, plan, l, work, machine, f);
      const double input = work.input_of(l);
      const double busy = l == 0 ? input : (input + work.active_fraction[l - 1]) / 2.0;
      if (choose_dense(plan.mode, input, kForwardDenseFrom)) {
        cost.forward = dense.forward;
        cost.forward_dense = true;
      }
      if (choose_dense(plan.mode, busy, kBackwardDenseFrom)) {
        cost.delta = dense.delta, cost.weight_gradient = dense.weight_gradient;
        cost.input_gradient = dense.input_gradient, cost.lists = dense.lists;
        cost.backward_dense = true;
      }
    }
    const Shape s(network, plan, l, work, f);
    if (chunks > 1.0)
      repeat(cost, chunks, spiking, tile_share(s.layer, plan.workers) * s.parameters() * 3.0 * kFloat / f.l3_bandwidth);
    (spiking ? result.forward_ns : result.backward_ns) += cost.forward_phase();
    result.backward_ns += cost.backward_phase();
    result.update_ns += cost.update;
    result.layers.push_back(cost);
  }
  const double rows = recording.rows();
  result.data_ns = rows * f.gather_row_ns + rows * work.input_activity * network.channels * f.gather_event_ns;
  return result;
}

double dense_from_activity(const NetworkSpec& network, const Plan& plan, std::size_t layer, const Workload& work,
                           const Machine& machine, const MachineFigures& f) {
  if (!network.layers[layer].spiking()) return 1.0;
  const double now = std::max(work.input_of(layer), 1e-6);
  const auto lists_win = [&](double activity) {
    Workload scaled = work;
    const auto scale = [&](double& value) { value = std::min(1.0, value * activity / now); };
    if (layer == 0 || work.input_of(layer) <= 0.0) scaled.input_activity = activity;
    if (layer > 0) scale(scaled.activity[layer - 1]), scale(scaled.active_fraction[layer - 1]);
    const LayerCost sparse = sparse_cost(network, plan, layer, scaled, machine, f);
    const LayerCost dense = dense_cost(network, plan, layer, scaled, machine, f);
    return sparse.forward_phase() + sparse.backward_phase() <= dense.forward_phase() + dense.backward_phase();
  };
  if (lists_win(1.0)) return 1.0;
  double low = 1e-4, high = 1.0;
  for (int i = 0; i < 40; ++i) {
    const double middle = std::sqrt(low * high);
    (lists_win(middle) ? low : high) = middle;
  }
  return high;
}

double rough_limit_ns(const NetworkSpec& network, const Plan& plan, const Workload& work, const MachineFigures& f) {
  double ns = 0.0;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const Shape s(network, plan, l, work, f);
    double passes = s.first ? 2.0 : 3.0;
    double events = s.events, active = s.active_below, parameters = s.parameters();
    if (network.layers[l].recurrent) {  // its own spikes are a second input, whose gradient is wanted, too
      const double size = network.layers[l].size;
      passes += 1.0;
      events += work.activity[l] * size;
      active += std::max(work.active_fraction[l], work.activity[l]) * size;
      parameters += s.stride() * size;
    }
    // Forward and weight gradient add a row of a tile per input event, the input gradient reads one per active neuron.
    const double row_bytes = s.rows * (2.0 * events + active) * s.stride() * s.number_bytes;
    ns += row_bytes / f.l2_bandwidth + passes * s.rows * s.tiles * kLimitCyclesPerStep / f.clock_ghz;
    ns += parameters * update_ns_per_parameter(network, plan, work, f);
  }
  return ns / plan.workers;
}

}  // namespace spikeloom
