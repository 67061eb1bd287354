// Memory as the plan predicts it is what the engine counts.
#include "plan/memory.hpp"

#include <gtest/gtest.h>

#include "core/random.hpp"
#include "engine/engine.hpp"
#include "made_up_machine.hpp"
#include "train/losses.hpp"
#include "train/optimizer.hpp"

namespace spikeloom::testing {
namespace {

SpikeBatch random_batch(int samples, int steps, int neurons, double activity) {
  SpikeBatch batch;
  batch.samples = samples, batch.steps = steps, batch.neurons = neurons;
  RandomStream random(1, "batch");
  for (int row = 0; row < samples * steps; ++row) {
    for (int id = 0; id < neurons; ++id) {
      if (random.uniform() < activity) batch.ids.push_back(static_cast<std::uint32_t>(id));
    }
    batch.offsets.push_back(static_cast<std::uint32_t>(batch.ids.size()));
  }
  batch.labels.assign(samples, 3);
  return batch;
}

struct NoUpdate final : ParameterUpdate {
  void apply(BlockId, std::size_t, float*, const float*, std::size_t) override {}
};

TEST(Memory, SavedStateIsWhatTheEngineCounts) {
  for (const auto& [through_reset, bptt_steps] : {std::pair{false, 0}, {true, 0}, {false, 8}}) {
    NetworkSpec network = layered(150, {100, 70}, 40);
    for (LayerSpec& layer : network.layers) {
      layer.init = InitKind::normal;
      layer.init_gain = 2.0;
      layer.reset_gradient = through_reset && layer.spiking();
    }
    const SpikeBatch batch = random_batch(6, network.steps, network.channels, 0.1);
    WorkerTeam team(1);
    const Plan plan = make_plan(network, EngineMode::sparse, 1, EnginePrecision::fp32, bptt_steps);
    Engine engine(network, plan, team);
    engine.import_parameters(initial_parameters(network, 1));
    NoUpdate update;
    const BatchResult result = engine.train_step(batch, *make_readout_loss({}, network), update);

    Workload work = workload(network, batch.samples, batch.activity(), 0.0);
    for (int l = 0; l < 2; ++l) {
      work.activity[l] = result.layers[l].activity;
      work.active_fraction[l] = result.layers[l].active_fraction;
      ASSERT_GT(work.activity[l], 0.01);
    }
    // What the layers above hand down is counted by the plan alone: one float for every active neuron.
    const double chunks = bptt_steps > 0 ? static_cast<double>(network.steps) / bptt_steps : 1.0;
    const double handed_down = 4.0 * static_cast<double>(result.layers[0].active + result.layers[1].active) / chunks;
    const double counted = static_cast<double>(result.saved_state_bytes) + handed_down;
    // Of chunks the engine counts the busiest.
    EXPECT_NEAR(static_cast<double>(memory_use(network, plan, work).saved), counted,
                bptt_steps > 0 ? 0.1 * counted : 8.0);
  }
}

TEST(Memory, WeightsAreTheEnginesBlocks) {
  const NetworkSpec network = layered(150, {100, 70}, 40);
  WorkerTeam team(1);
  const Plan plan = make_plan(network, EngineMode::sparse, 1);
  const Engine engine(network, plan, team);
  std::size_t floats = 0;
  for (const BlockId block : engine.blocks()) floats += engine.block_size(block);
  Workload work = workload(network, 6, 0.02, 0.02);
  EXPECT_EQ(memory_use(network, plan, work).weights, floats * sizeof(float));
  EXPECT_EQ(memory_use(network, plan, work).optimiser, 2 * floats * sizeof(float));
  work.moments = 1;
  EXPECT_EQ(memory_use(network, plan, work).optimiser, floats * sizeof(float));
}

TEST(Memory, ClippingKeepsAllGradients) {
  const NetworkSpec network = layered(2312, {1471, 1471}, 100);
  const Plan plan = make_plan(network, EngineMode::sparse, 2);
  Workload work = workload(network, 48, 0.02, 0.02);
  const MemoryUse without = memory_use(network, plan, work);
  work.clip = true;
  const MemoryUse with = memory_use(network, plan, work);
  EXPECT_LT(without.gradients, without.weights / 10);
  EXPECT_GT(with.gradients, with.weights * 9 / 10);
  EXPECT_EQ(with.saved, without.saved);
}

TEST(Memory, GroupsShrinkAsTheActiveSetGrows) {
  const NetworkSpec network = layered(2312, {4096, 4096}, 1000);
  const Plan plan = make_plan(network, EngineMode::sparse, 1);
  const int quiet = group_size(network, plan, 1, workload(network, 48, 0.02, 0.005));
  const int busy = group_size(network, plan, 1, workload(network, 48, 0.02, 0.05));
  EXPECT_LT(busy, quiet);
  EXPECT_GE(busy, 1);
  EXPECT_EQ(group_size(network, plan, 0, workload(network, 48, 0.02, 0.05)), 48);
}

}  // namespace
}  // namespace spikeloom::testing
