// What of a layer's spikes goes to the next layer, on cases made by hand and by what must not change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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
    outgoing.begin(2, {0, 2}, 2, nullptr);
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

/// Two samples of four steps; neurons 0 to 3 with delays of 2, 0, 1 and 9 steps.
TEST(Delay, MovesEachNeuronByItsOwnStepsWithinTheSample) {
  LayerSpec layer = lif_layer("hidden", 4);
  layer.delay_steps = {0.0, 9.0};
  const SpikeLists spikes = lists_of({{0, 1, 2, 3}, {1}, {0, 2}, {2}, {}, {0}, {1, 2}, {1}});
  const SpikeLists active = lists_of({{0, 3}, {1, 2}, {}, {2}, {0, 1, 2, 3}, {}, {0}, {}});
  for (const int workers : {1, 2}) {
    WorkerTeam team(workers, false);
    Outgoing outgoing(layer);
    outgoing.set_delays({2, 0, 1, 9});
    outgoing.begin(2, {0, 4}, 4, nullptr);
    ASSERT_TRUE(outgoing.changes());
    outgoing.send_spikes(spikes, team);
    outgoing.send_active(spikes, active, team);
    EXPECT_EQ(rows_of(outgoing.spikes()), (std::vector<Ids>{{1}, {1, 2}, {0}, {2}, {}, {}, {1}, {0, 1, 2}}));
    EXPECT_EQ(rows_of(outgoing.active()), (std::vector<Ids>{{}, {1}, {0, 2}, {}, {1}, {2}, {0}, {}}));
    EXPECT_EQ(returned(outgoing, 0, 4, active), (std::vector<float>{2, 0, 1, 3, 0}));
    EXPECT_EQ(returned(outgoing, 1, 4, active), (std::vector<float>{3, 1, 2, 0, 0}));
    EXPECT_EQ(outgoing.value(), 1.0F);
  }
}

TEST(Delay, ComesAfterTheBudget) {
  LayerSpec layer = lif_layer("hidden", 4);
  layer.delay_steps = {0.0, 1.0};
  layer.spike_budget = 2;
  const SpikeLists spikes = lists_of({{0, 1, 2}, {0, 3}});
  const SpikeLists active = lists_of({{2, 3}, {1, 3}});
  WorkerTeam team(1, false);
  Outgoing outgoing(layer);
  outgoing.set_delays({1, 1, 0, 0});
  outgoing.begin(1, {0, 2}, 2, nullptr);
  outgoing.send_spikes(spikes, team);
  outgoing.send_active(spikes, active, team);
  EXPECT_EQ(rows_of(outgoing.spikes()), (std::vector<Ids>{{}, {0, 1, 3}}));
  EXPECT_EQ(rows_of(outgoing.active()), (std::vector<Ids>{{}, {3}}));
  EXPECT_EQ(returned(outgoing, 0, 2, active), (std::vector<float>{0, 0, 0, 1}));
}

TEST(Delay, IsDrawnEvenlyFromItsRange) {
  NetworkSpec network;
  network.channels = 3;
  network.layers.push_back(lif_layer("hidden", 3000));
  network.layers.push_back(readout_layer("output", 2, NeuronKind::leaky_integrator));
  network.layers[0].delay_steps = {2.0, 4.0};
  std::vector<int> times(6, 0);
  const Parameters parameters = initial_parameters(network, 1);
  for (const float delay : parameters.layers[0].delay) ++times.at(static_cast<std::size_t>(delay));
  EXPECT_EQ(times[2] + times[3] + times[4], 3000);
  for (const int delay : {2, 3, 4}) EXPECT_NEAR(times[delay], 1000, 110);
  EXPECT_NE(initial_parameters(network, 2).layers[0].delay, parameters.layers[0].delay);
  EXPECT_TRUE(parameters.layers[1].delay.empty());
}

/// Every neuron of `size` active, and every third spiking, in every step.
struct Busy {
  Busy(int samples, int steps, int size) {
    std::vector<Ids> spiking, all;
    for (int row = 0; row < samples * steps; ++row) {
      spiking.emplace_back(), all.emplace_back();
      for (int id = 0; id < size; ++id) {
        all.back().push_back(static_cast<std::uint32_t>(id));
        if ((id + row) % 3 == 0) spiking.back().push_back(static_cast<std::uint32_t>(id));
      }
    }
    spikes = lists_of(spiking);
    active = lists_of(all);
  }
  SpikeLists spikes, active;
};

/// What dropout leaves of it, as rows of active neurons.
std::vector<Ids> left_by_dropout(const LayerSpec& layer, const DropoutDraw& draw, int samples, int steps) {
  const Busy busy(samples, steps, layer.size);
  WorkerTeam team(2, false);
  Outgoing outgoing(layer);
  outgoing.begin(samples, {0, steps}, steps, &draw);
  outgoing.send_spikes(busy.spikes, team);
  outgoing.send_active(busy.spikes, busy.active, team);
  const std::vector<Ids> spikes = rows_of(outgoing.spikes()), active = rows_of(outgoing.active());
  for (std::size_t row = 0; row < active.size(); ++row) {
    Ids active_spikes;
    for (const std::uint32_t id : active[row]) {
      if ((id + row) % 3 == 0) active_spikes.push_back(id);
    }
    EXPECT_EQ(spikes[row], active_spikes) << "a neuron's spike and its gradient share their fate";
  }
  return active;
}

TEST(Dropout, LeavesOutNeuronsWithItsProbabilityAndScalesTheOthers) {
  LayerSpec layer = lif_layer("hidden", 50);
  for (const double probability : {0.1, 0.5, 0.9}) {
    layer.dropout = probability;
    std::size_t left = 0;
    for (const Ids& row : left_by_dropout(layer, {1, 2, 0}, 20, 10)) left += row.size();
    const double deviation = std::sqrt(10'000.0 * probability * (1.0 - probability));
    EXPECT_NEAR(static_cast<double>(left), 10'000.0 * (1.0 - probability), 4.0 * deviation);

    const Busy busy(1, 10, layer.size);
    const DropoutDraw draw{1, 2, 0};
    WorkerTeam team(1, false);
    Outgoing outgoing(layer);
    outgoing.begin(1, {0, 10}, 10, &draw);
    outgoing.send_spikes(busy.spikes, team);
    outgoing.send_active(busy.spikes, busy.active, team);
    const auto value = static_cast<float>(1.0 / (1.0 - probability));
    EXPECT_EQ(outgoing.value(), value);
    float largest = 0.0F;
    for (const float gradient : returned(outgoing, 0, 10, busy.active)) largest = std::max(largest, gradient);
    EXPECT_EQ(largest, value * static_cast<float>(outgoing.active().ids.size()));
  }
}

TEST(Dropout, DependsOnSeedUpdateLayerAndSampleAlone) {
  LayerSpec layer = lif_layer("hidden", 50);
  layer.dropout = 0.5;
  const std::vector<Ids> usual = left_by_dropout(layer, {1, 2, 0}, 3, 4);
  EXPECT_EQ(left_by_dropout(layer, {1, 2, 0}, 3, 4), usual);
  EXPECT_NE(left_by_dropout(layer, {2, 2, 0}, 3, 4), usual);
  EXPECT_NE(left_by_dropout(layer, {1, 3, 0}, 3, 4), usual);
  for (int row = 1; row < 12; ++row) EXPECT_NE(usual[row], usual[0]);
  // The second and third sample of an update, as a batch of their own.
  EXPECT_EQ(left_by_dropout(layer, {1, 2, 1}, 2, 4), std::vector<Ids>(usual.begin() + 4, usual.end()));
  layer.name = "other";
  EXPECT_NE(left_by_dropout(layer, {1, 2, 0}, 3, 4), usual);
}

TEST(Dropout, IsAppliedBeforeTheBudget) {
  LayerSpec layer = lif_layer("hidden", 50);
  layer.dropout = 0.5;
  const std::vector<Ids> unlimited = left_by_dropout(layer, {1, 2, 0}, 3, 4);
  layer.spike_budget = 50;
  EXPECT_EQ(left_by_dropout(layer, {1, 2, 0}, 3, 4), unlimited);
  layer.spike_budget = 3;
  for (const Ids& row : left_by_dropout(layer, {1, 2, 0}, 3, 4)) EXPECT_EQ(row.size(), 3U);
}

TEST(Dropout, NeedsATrainingBatch) {
  LayerSpec layer = lif_layer("hidden", 50);
  layer.dropout = 0.5;
  Outgoing outgoing(layer);
  outgoing.begin(3, {0, 4}, 4, nullptr);
  EXPECT_FALSE(outgoing.changes());
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

/// Without neurons of its own memory, what a delayed layer's spikes do happens so many steps later.
TEST(Delay, OfAWholeLayerIsAReadoutThatComesLater) {
  for (const EngineMode mode : {EngineMode::sparse, EngineMode::dense}) {
    Case test = two_hidden_layers();
    const auto output = [&] {
      WorkerTeam team(2, false);
      Engine engine(test.network, make_plan(test.network, mode, 2), team);
      engine.import_parameters(test.parameters);
      return engine.record(test.batch, 2, false, true).membrane;
    };
    for (float& bias : test.parameters.layers[2].bias) bias = 0.0F;
    const std::vector<float> at_once = output();
    test.network.layers[1].delay_steps = {3.0, 3.0};
    test.parameters.layers[1].delay.assign(67, 3.0F);
    const std::vector<float> later = output();
    for (std::size_t row = 0; row < test.batch.rows(); ++row) {
      for (std::size_t c = 0; c < 10; ++c) {
        EXPECT_EQ(later[row * 10 + c], row % 30 < 3 ? 0.0F : at_once[(row - 3) * 10 + c]);
      }
    }
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

/// The sum of all membranes: what dropout leaves as it is, on the mean over many draws.
struct MembraneSum final : ReadoutLoss {
  SampleResult evaluate_membrane(const float* output, float* gradient, int steps, int classes, int stride, int,
                                 double scale) const override {
    SampleResult result;
    for (int step = 0; step < steps; ++step) {
      for (int c = 0; c < classes; ++c) {
        result.loss += static_cast<double>(output[step * stride + c]);
        if (gradient) gradient[step * stride + c] = static_cast<float>(scale);
      }
    }
    return result;
  }
  SampleResult evaluate_counts(const std::uint32_t*, float*, int, int, int, double) const override { return {}; }
};

TEST(Dropout, LeavesTheMeanInputOfTheNextLayerAsItIs) {
  for (const EngineMode mode : {EngineMode::sparse, EngineMode::dense}) {
    Case test = two_hidden_layers();
    test.network.layers[1].dropout = 0.4;
    WorkerTeam team(2, false);
    Engine engine(test.network, make_plan(test.network, mode, 2), team);
    engine.import_parameters(test.parameters);
    const MembraneSum loss;
    const double without = engine.evaluate(test.batch, loss).loss;
    constexpr int kDraws = 200;
    double sum = 0.0, squares = 0.0;
    Parameters gradient;
    for (int draw = 0; draw < kDraws; ++draw) {
      engine.set_dropout({1, static_cast<std::uint64_t>(draw), 0});
      const double with = engine.gradient(test.batch, loss, gradient).loss;
      sum += with;
      squares += with * with;
    }
    const double mean = sum / kDraws;
    const double deviation = std::sqrt((squares / kDraws - mean * mean) / kDraws);
    EXPECT_GT(deviation, 0.0);
    EXPECT_LT(deviation, 0.1 * std::fabs(without)) << "the comparison can fail";
    EXPECT_NEAR(mean, without, 4.0 * deviation);
  }
}

TEST(Dropout, ChangesNothingInEvaluation) {
  Case test = two_hidden_layers();
  WorkerTeam team(2, false);
  const auto evaluated = [&] {
    Engine engine(test.network, make_plan(test.network, EngineMode::sparse, 2), team);
    engine.import_parameters(test.parameters);
    Parameters gradient;
    engine.gradient(test.batch, *make_readout_loss(test.loss, test.network), gradient);  // draws, if it may
    return engine.evaluate(test.batch, *make_readout_loss(test.loss, test.network)).loss;
  };
  const double without = evaluated();
  for (const int layer : {0, 1}) test.network.layers[layer].dropout = 0.5;
  EXPECT_EQ(evaluated(), without);
}

}  // namespace
}  // namespace spikeloom::testing
