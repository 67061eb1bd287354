// What is kept for the backward pass grows with spikes, not with neurons times steps.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.hpp"
#include "random_case.hpp"
#include "train/losses.hpp"

namespace spikeloom::testing {
namespace {

struct Kept {
  double bytes = 0.0;
  double dense_bytes = 0.0;  // float32 membranes of all hidden neurons and steps
  double activity = 0.0;
};

Case wide_case(int steps, int samples, bool recurrent) {
  Case test;
  test.network.channels = 2312;
  for (const char* name : {"hidden1", "hidden2"}) {
    LayerSpec& layer = test.network.layers.emplace_back(lif_layer(name, 1471));
    layer.membrane.decay = {0.9, 0.9};
    layer.recurrent = recurrent;
  }
  test.network.layers.push_back(readout_layer("output", 10, NeuronKind::leaky_integrator));
  test.batch = random_batch(samples, steps, 2312, 10, 0.02, RandomStream(1, "batch"));
  test.parameters = random_parameters(test.network, 0.02, Liveliness::ordinary, RandomStream(2, "parameters"));
  return test;
}

/// Scales the weights, layer by layer, until `activity` of the neurons fire in a step.
void set_activity(Case& test, Engine& engine, double activity) {
  const auto loss = make_readout_loss(test.loss, test.network);
  for (int l = 0; l < 2; ++l) {
    const std::vector<float> weight = test.parameters.layers[l].weight;
    double low = 0.1, high = 10.0;
    for (int i = 0; i < 12; ++i) {
      const double scale = std::sqrt(low * high);
      for (std::size_t w = 0; w < weight.size(); ++w)
        test.parameters.layers[l].weight[w] = static_cast<float>(weight[w] * scale);
      engine.import_parameters(test.parameters);
      (engine.evaluate(test.batch, *loss).layers[l].activity < activity ? low : high) = scale;
    }
  }
}

/// Two hidden layers of 1471 neurons on 2312 channels, as for N-MNIST, at about `activity`.
Kept keep(int steps, int samples, double activity, bool recurrent = false, int bptt_steps = 0) {
  Case test = wide_case(steps, samples, recurrent);
  WorkerTeam team(2, false);
  Engine engine(test.network, make_plan(test.network, EngineMode::sparse, 2, EnginePrecision::fp32, bptt_steps), team);
  set_activity(test, engine, activity);
  Parameters gradient;
  const BatchResult result = engine.gradient(test.batch, *make_readout_loss(test.loss, test.network), gradient);
  return {static_cast<double>(result.saved_state_bytes), 4.0 * 2 * 1471 * steps * samples,
          (result.layers[0].activity + result.layers[1].activity) / 2.0};
}

TEST(SavedState, TakesAtMostATenthOfTheDenseStateAtTwoPercentActivity) {
  const Kept kept = keep(100, 48, 0.021);
  EXPECT_GT(kept.activity, 0.02);
  EXPECT_LT(kept.activity, 0.025);
  EXPECT_LE(kept.bytes, 0.1 * kept.dense_bytes);
}

TEST(SavedState, OfRecurrentLayersIsNoLarger) {
  const Kept kept = keep(100, 16, 0.021, true);
  EXPECT_GT(kept.activity, 0.015);
  EXPECT_LE(kept.bytes, 0.1 * kept.dense_bytes);
}

TEST(SavedState, OfChunksGrowsWithTheChunkAndNotWithTheRecording) {
  constexpr int kSamples = 4, kOutputs = 16;  // as the last layer's tile is wide
  const auto without_outputs = [&](int steps, bool recurrent, int bptt_steps) {
    return keep(steps, kSamples, 0.02, recurrent, bptt_steps).bytes - 4.0 * kOutputs * steps * kSamples;
  };
  for (const bool recurrent : {false, true}) {
    const double small = without_outputs(150, recurrent, 50);
    EXPECT_NEAR(without_outputs(450, recurrent, 50) / small, 1.0, 0.2);
    if (recurrent) continue;
    EXPECT_GT(without_outputs(600, recurrent, 200) / small, 2.0);
    EXPECT_GT(without_outputs(600, recurrent, 0) / small, 5.0);
  }
}

TEST(SavedState, GrowsWithSpikes) {
  for (const int steps : {100, 1000}) {
    const Kept quiet = keep(steps, 4, 0.005), busy = keep(steps, 4, 0.02);
    SCOPED_TRACE(steps);
    ASSERT_GT(busy.activity, 3.0 * quiet.activity);
    EXPECT_GT(busy.bytes, 2.0 * quiet.bytes);
    EXPECT_LT(quiet.bytes, 0.05 * quiet.dense_bytes);
  }
}

}  // namespace
}  // namespace spikeloom::testing
