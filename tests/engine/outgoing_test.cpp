// What of a layer's spikes goes to the next layer, on cases made by hand and by what must not change.
#include <gtest/gtest.h>

#include "engine/engine.hpp"
#include "engine/outgoing.hpp"
#include "random_case.hpp"
#include "train/losses.hpp"

namespace spikeloom::testing {
namespace {

using Ids = std::vector<std::uint32_t>;

/// Lists from the ids of each (sample, step).
SpikeLists lists_of(const std::vector<Ids>& rows) {
  SpikeLists lists;
  lists.offsets.push_back(0);
  for (const Ids& row : rows) {
    lists.ids.insert(lists.ids.end(), row.begin(), row.end());
    lists.offsets.push_back(static_cast<std::uint32_t>(lists.ids.size()));
  }
  return lists;
}

std::vector<Ids> rows_of(const SpikeLists& lists) {
  std::vector<Ids> rows;
  for (std::size_t row = 0; row + 1 < lists.offsets.size(); ++row)
    rows.emplace_back(lists.ids.begin() + lists.offsets[row], lists.ids.begin() + lists.offsets[row + 1]);
  return rows;
}

/// dLoss/ds at the layer's own active entries of a sample, where its sent entries have 1, 2, 3, ...
std::vector<float> returned(const Outgoing& outgoing, int sample, int steps, const SpikeLists& own_active) {
  const std::size_t row = static_cast<std::size_t>(sample) * steps;
  std::vector<float> sent;
  while (sent.size() < outgoing.active().offsets[row + steps] - outgoing.active().offsets[row])
    sent.push_back(static_cast<float>(sent.size() + 1));
  std::vector<float> own(own_active.offsets[row + steps] - own_active.offsets[row]);
  outgoing.return_gradient(sample, own_active, sent.data(), own.data());
  return own;
}

/// Two samples of two steps; neurons 0 to 9. A list of three ids is filled with spikes first, then with neurons that
/// are active only, the lowest of each first.
TEST(SpikeBudget, KeepsSpikesFirstThenTheLowestActiveNeurons) {
  LayerSpec layer = lif_layer("hidden", 10);
  layer.spike_budget = 3;
  const SpikeLists spikes = lists_of({{7, 8}, {1, 4, 6, 9}, {}, {0, 2, 5}});
  // Neuron 8 spikes at the first step without being active: its membrane is above the window.
  const SpikeLists active = lists_of({{0, 2, 7}, {0, 1, 4, 6, 9}, {3, 4, 5, 6}, {1, 2}});
  for (const int workers : {1, 2}) {
    WorkerTeam team(workers, false);
    Outgoing outgoing(layer);
    outgoing.begin(2, 2);
    ASSERT_TRUE(outgoing.changes());
    outgoing.send_spikes(spikes, team);
    outgoing.send_active(spikes, active, team);
    EXPECT_EQ(rows_of(outgoing.spikes()), (std::vector<Ids>{{7, 8}, {1, 4, 6}, {}, {0, 2, 5}}));
    EXPECT_EQ(rows_of(outgoing.active()), (std::vector<Ids>{{0, 7}, {1, 4, 6}, {3, 4, 5}, {2}}));
    EXPECT_EQ(returned(outgoing, 0, 2, active), (std::vector<float>{1, 0, 2, 0, 3, 4, 5, 0}));
    EXPECT_EQ(returned(outgoing, 1, 2, active), (std::vector<float>{1, 2, 3, 0, 0, 4}));
    EXPECT_EQ(outgoing.budget().spikes, 9U);
    EXPECT_EQ(outgoing.budget().dropped_spikes, 1U);
    EXPECT_EQ(outgoing.budget().gradients, 8U);
    EXPECT_EQ(outgoing.budget().dropped_gradients, 4U);
  }
}

Case two_hidden_layers() {
  Case test;
  test.network.channels = 45;
  test.network.steps = 30;
  for (const char* name : {"hidden1", "hidden2"}) test.network.layers.push_back(lif_layer(name, 67));
  test.network.layers.push_back(readout_layer("output", 10, NeuronKind::leaky_integrator));
  test.batch = random_batch(9, 30, 45, 10, 0.1, RandomStream(1, "batch"));
  test.parameters = random_parameters(test.network, 0.1, Liveliness::ordinary, RandomStream(1, "parameters"));
  return test;
}

struct Gradient {
  BatchResult result;
  Parameters parameters;
};

Gradient gradient_of(const Case& test, EngineMode mode) {
  WorkerTeam team(2, false);
  Engine engine(test.network, make_plan(test.network, mode, 2), team);
  engine.import_parameters(test.parameters);
  Gradient gradient;
  gradient.result = engine.gradient(test.batch, *make_readout_loss(test.loss, test.network), gradient.parameters);
  return gradient;
}

TEST(SpikeBudget, WithRoomForAllChangesNoBit) {
  for (const EngineMode mode : {EngineMode::sparse, EngineMode::dense}) {
    Case test = two_hidden_layers();
    const Gradient without = gradient_of(test, mode);
    for (const int layer : {0, 1}) test.network.layers[layer].spike_budget = 67;
    const Gradient with = gradient_of(test, mode);
    EXPECT_EQ(with.result.loss, without.result.loss);
    for (int l = 0; l < 3; ++l) EXPECT_EQ(with.parameters.layers[l].weight, without.parameters.layers[l].weight) << l;
    EXPECT_GT(with.result.layers[0].budget.gradients, 100U);
    EXPECT_EQ(with.result.layers[0].budget.spikes, with.result.layers[0].spikes);
    EXPECT_EQ(with.result.layers[0].budget.dropped_spikes + with.result.layers[0].budget.dropped_gradients, 0U);
    EXPECT_EQ(without.result.layers[0].budget.spikes, 0U);
  }
}

TEST(SpikeBudget, HoldsInEvaluationToo) {
  Case test = two_hidden_layers();
  test.network.layers[0].spike_budget = 2;
  const Gradient trained = gradient_of(test, EngineMode::sparse);
  WorkerTeam team(2, false);
  Engine engine(test.network, make_plan(test.network, EngineMode::sparse, 2), team);
  engine.import_parameters(test.parameters);
  const BatchResult evaluated = engine.evaluate(test.batch, *make_readout_loss(test.loss, test.network));
  EXPECT_EQ(evaluated.loss, trained.result.loss);
  EXPECT_GT(evaluated.layers[0].budget.dropped_spikes, 10U);
  EXPECT_EQ(evaluated.layers[0].budget.dropped_spikes, trained.result.layers[0].budget.dropped_spikes);
  EXPECT_EQ(evaluated.layers[0].budget.gradients, 0U);
}

TEST(SpikeBudget, LeavesTheLayerItsOwnSpikes) {
  Case test = two_hidden_layers();
  const Gradient without = gradient_of(test, EngineMode::sparse);
  test.network.layers[0].spike_budget = 1;
  const Gradient with = gradient_of(test, EngineMode::sparse);
  EXPECT_EQ(with.result.layers[0].spikes, without.result.layers[0].spikes);
  EXPECT_EQ(with.result.layers[0].spike_counts, without.result.layers[0].spike_counts);
  EXPECT_LT(with.result.layers[1].synaptic_operations, without.result.layers[1].synaptic_operations);
  EXPECT_LE(with.result.layers[1].synaptic_operations, test.batch.rows() * 67);
}

}  // namespace
}  // namespace spikeloom::testing
