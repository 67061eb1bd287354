// What training steers a layer's activity with, against what is known of it otherwise.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.hpp"
#include "random_case.hpp"
#include "train/losses.hpp"

namespace spikeloom::testing {
namespace {

Case three_layers() {
  Case test;
  test.network.channels = 45;
  for (const char* name : {"hidden1", "hidden2"}) test.network.layers.push_back(lif_layer(name, 67));
  test.network.layers.push_back(readout_layer("output", 10, NeuronKind::leaky_integrator));
  test.batch = random_batch(9, 30, 45, 10, 0.1, RandomStream(1, "batch"));
  test.network.steps = 30;
  test.parameters = random_parameters(test.network, 0.1, Liveliness::ordinary, RandomStream(1, "parameters"));
  return test;
}

struct Gradient {
  BatchResult result;
  Parameters parameters;
};

template <class Change>
Gradient gradient_of(const Case& test, const NetworkSpec& network, EngineMode mode, Change change, int bptt_steps = 0) {
  WorkerTeam team(2, false);
  Engine engine(network, make_plan(network, mode, 2, EnginePrecision::fp32, bptt_steps), team);
  engine.import_parameters(test.parameters);
  change(engine);
  Gradient gradient;
  gradient.result = engine.gradient(test.batch, *make_readout_loss(test.loss, network), gradient.parameters);
  return gradient;
}

/// The squares above 0 and below 1 differ by a constant and a linear term: w r^2 - w (1 - r)^2 = 2 w r - w.
class RateCost : public ::testing::TestWithParam<std::tuple<EngineMode, int>> {};

INSTANTIATE_TEST_SUITE_P(ModesAndChunks, RateCost,
                         ::testing::Combine(::testing::Values(EngineMode::sparse, EngineMode::dense),
                                            ::testing::Values(0, 7)));

TEST_P(RateCost, IsTheDifferenceOfTheTwoRegularisers) {
  const Case test = three_layers();
  constexpr double kWeight = 3.0;
  const auto [mode, bptt_steps] = GetParam();
  for (const int layer : {0, 1}) {
    NetworkSpec upper = test.network, lower = test.network;
    upper.layers[layer].rate_upper = 0.0;
    upper.layers[layer].rate_upper_weight = kWeight;
    lower.layers[layer].rate_lower = 1.0;
    lower.layers[layer].rate_lower_weight = kWeight;
    const auto none = [](Engine&) {};
    const Gradient plain = gradient_of(test, test.network, mode, none, bptt_steps);
    const Gradient above = gradient_of(test, upper, mode, none, bptt_steps);
    const Gradient below = gradient_of(test, lower, mode, none, bptt_steps);
    const auto price = [&](Engine& engine) { engine.set_rate_cost(layer, 2.0 * kWeight); };
    const Gradient cost = gradient_of(test, test.network, mode, price, bptt_steps);
    EXPECT_NEAR(cost.result.regulariser, 2.0 * kWeight * plain.result.layers[layer].activity, 1e-12);
    double error = 0.0, size = 0.0;
    for (int l = 0; l <= layer; ++l) {
      for (std::size_t i = 0; i < cost.parameters.layers[l].weight.size(); ++i) {
        const auto value = [&](const Gradient& of) { return static_cast<double>(of.parameters.layers[l].weight[i]); };
        const double by_cost = value(cost) - value(plain);
        const double by_regularisers = value(above) - value(below);
        error += (by_cost - by_regularisers) * (by_cost - by_regularisers);
        size += by_cost * by_cost;
      }
    }
    EXPECT_GT(size, 0.0);
    EXPECT_LT(std::sqrt(error / size), 1e-4);
  }
}

TEST(WindowLow, OfOneLayerIsThatOfItsSettings) {
  const Case test = three_layers();
  NetworkSpec wide = test.network;
  wide.layers[1].surrogate.window_low = -2.0;
  const Gradient by_setting = gradient_of(test, wide, EngineMode::sparse, [](Engine&) {});
  const Gradient by_call =
      gradient_of(test, test.network, EngineMode::sparse, [](Engine& engine) { engine.set_window_low(1, -2.0); });
  const Gradient plain = gradient_of(test, test.network, EngineMode::sparse, [](Engine&) {});
  EXPECT_GT(by_call.result.layers[1].active_fraction, 2.0 * plain.result.layers[1].active_fraction);
  EXPECT_EQ(by_call.result.layers[0].active_fraction, plain.result.layers[0].active_fraction);
  for (int l = 0; l < 3; ++l)
    EXPECT_EQ(by_call.parameters.layers[l].weight, by_setting.parameters.layers[l].weight) << l;
}

}  // namespace
}  // namespace spikeloom::testing
