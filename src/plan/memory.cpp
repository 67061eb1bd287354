#include "plan/memory.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.hpp"
#include "network/scalar_models.hpp"

namespace spikeloom {
namespace {

constexpr double kFloat = sizeof(float), kId = sizeof(std::uint32_t), kPlace = sizeof(std::size_t);

double entries_of(const NetworkSpec& network, const Workload& work, std::size_t l) {
  return work.rows() * network.layers[l].size * std::max(work.activity[l], work.active_fraction[l]);
}

double stride_of(const LayerPlan& layer) { return static_cast<double>(layer.tiles) * layer.tile_width; }

/// Lists of a spiking layer's tiles and its merged spikes (TileTrace and SpikeLists).
double saved_of(const NetworkSpec& network, const Plan& plan, const Workload& work, std::size_t l) {
  const LayerPlan& layer = plan.layers[l];
  const double per_entry = 1.0 + kFloat + (network.layers[l].reset_gradient ? kFloat : 0.0);
  const double per_tile =
      work.rows() + kernels::kCodePadding + 3.0 * kPlace * (work.batch + 1) + kId * layer.tile_width;
  const double spikes = work.rows() * network.layers[l].size * work.activity[l];
  const double lists = network.layers[l].changes_outgoing() ? 2.0 : 1.0;  // the layer's own, and what goes out
  return layer.tiles * per_tile + entries_of(network, work, l) * per_entry + lists * kId * (work.rows() + 1.0 + spikes);
}

double states_of(const LayerSpec& layer) {
  if (!layer.spiking()) return 1.0;
  return scalar::with_model(layer.neuron, []<class Model>(Model) { return static_cast<double>(Model::kStates); });
}

double active_per_sample(const NetworkSpec& network, const Workload& work, std::size_t l) {
  return l == 0 ? 0.0 : entries_of(network, work, l - 1) / work.batch;
}

}  // namespace

int group_size(const NetworkSpec& network, const Plan& plan, std::size_t l, const Workload& recording) {
  const Workload work = of_chunk(plan, recording);
  const double active = active_per_sample(network, work, l);
  if (active <= 0.0) return work.batch;
  const double allowed = static_cast<double>(plan.layers[l].partial_budget_bytes) / (kFloat * plan.layers[l].tiles);
  return static_cast<int>(std::clamp(std::floor(allowed / active), 1.0, static_cast<double>(work.batch)));
}

int range_size(const Plan& plan, const Workload& work) {
  return std::clamp(plan.delta_rows / of_chunk(plan, work).steps, 1, work.batch);
}

MemoryUse memory_use(const NetworkSpec& network, const Plan& plan, const Workload& recording) {
  const Workload work = of_chunk(plan, recording);
  const bool chunks = work.steps < recording.steps;
  double weights = 0.0, copies = 0.0, gradients = 0.0, saved = 0.0, delta_row = 0.0, shared_rows = 0.0, buffers = 0.0;
  double own = 0.0;
  const double rows = work.rows();
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    const LayerSpec& layer = network.layers[l];
    const double stride = stride_of(plan.layers[l]), inputs = network.inputs_of(l), width = plan.layers[l].tile_width;
    const double bytes = kFloat * stride * (inputs + (layer.bias ? 1.0 : 0.0));
    weights += bytes;
    if (plan.layers[l].half_rows) copies += 2.0 * stride * inputs;
    const bool grouped = group_size(network, plan, l, work) < work.batch;
    if (work.clip || !layer.spiking() || grouped || chunks) gradients += kFloat * stride * inputs;
    if (chunks) {
      gradients += bytes;
      const double kept = layer.learn.empty() ? 2.0 : 3.0;  // CarriedState
      saved += kept * work.batch * stride * states_of(layer) * kFloat + kId * (work.batch + 1.0);
    }
    if (layer.spiking()) saved += saved_of(network, plan, work, l);
    if (l + 1 == plan.layers.size() && !layer.spiking()) saved += recording.rows() * stride * kFloat;
    const double row = width * (plan.layers[l].half_rows ? 2.0 : kFloat);
    if (layer.spiking()) delta_row = std::max(delta_row, row);
    const double shared = shared_tiles(plan.layers[l]);
    shared_rows = std::max(shared_rows, shared * row);
    // A worker's gradient of the tile at hand; its lists of a sample; the readout's gradient of a sample.
    own = std::max(own, width * kFloat * inputs + work.steps * width * (1.0 + kFloat));
    const double partials =
        kFloat * plan.layers[l].tiles * active_per_sample(network, work, l) * group_size(network, plan, l, work);
    const double below = l == 0 ? 0.0 : entries_of(network, work, l - 1);
    const double ranges = std::ceil(static_cast<double>(work.batch) / range_size(plan, work));
    const double sorted = kId * (rows * inputs * work.input_of(l) + ranges * (inputs + 1.0));
    buffers = std::max(buffers, partials + sorted + kId * (rows + 1.0 + below) + shared * width * kFloat * inputs);
    if (l > 0) saved += kFloat * below;  // dLoss/ds of the active neurons
  }
  const double batch =
      kId * ((recording.rows() + (chunks ? rows : 0.0)) * (1.0 + network.channels * work.input_activity));
  const auto bytes = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
  MemoryUse use;
  use.weights = bytes(weights + copies);
  use.optimiser = bytes(weights * work.moments);
  use.gradients = bytes(gradients);
  use.saved = bytes(saved);
  use.deltas = bytes(plan.workers * delta_row * range_size(plan, work) * work.steps +
                     std::min(shared_rows * rows, static_cast<double>(plan.shared_delta_bytes)));
  use.buffers = bytes(buffers + batch + plan.workers * own);
  return use;
}

}  // namespace spikeloom
