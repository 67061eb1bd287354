// The gradient of the sparse engine is that of the dense float64 reference.
#include <gtest/gtest.h>

#include "gradient_check.hpp"

namespace spikeloom::testing {
namespace {

Case random_case(std::uint64_t number, bool any_neuron = false) {
  RandomStream random(number, "gradient case");
  Case test;
  const double activity = pick(random, {0.01, 0.05, 0.2});
  const int steps = pick(random, {1, 2, 5, 17, 40, 100, 300});
  const int samples = steps >= 100 ? pick(random, {1, 2, 3}) : pick(random, {1, 3, 8, 70});
  test.network.channels = static_cast<int>(1 + random.below(steps * samples > 1000 ? 60 : 150));
  test.network.steps = steps;
  const int hidden = static_cast<int>(random.below(4));
  for (int l = 0; l < hidden; ++l) {
    test.network.layers.push_back(lif_layer("hidden" + std::to_string(l + 1),
                                            static_cast<int>(1 + random.below(steps * samples > 1000 ? 70 : 150))));
    randomise_layer(test.network.layers.back(), random);
  }
  const int classes = pick(random, {2, 10, 20, 35, 70});
  test.loss.over = pick(random, {LossOver::steps, LossOver::steps_sum, LossOver::softmax_sum, LossOver::mean,
                                 LossOver::max, LossOver::last});
  const auto readout = random.below(4);
  if (readout == 0 && hidden > 0) {
    test.network.layers.push_back(lif_layer("output", classes));
    randomise_layer(test.network.layers.back(), random);
    test.loss.kind = pick(random, {LossKind::spike_count, LossKind::squared_error});
  } else {
    if (readout == 1)
      test.network.layers.push_back(
          readout_layer("integrator", static_cast<int>(1 + random.below(150)), NeuronKind::leaky_integrator));
    test.network.layers.push_back(
        readout_layer("output", classes, readout == 2 ? NeuronKind::leaky_integrator : NeuronKind::linear));
    test.network.layers.back().bias = random.below(2) == 0;
  }
  RandomStream recurrence(number, "recurrence");
  RandomStream neurons(number, "neurons");
  for (LayerSpec& layer : test.network.layers) {
    layer.recurrent = layer.spiking() && recurrence.below(3) == 0;
    if (any_neuron && layer.spiking()) randomise_neuron(layer, neurons);
  }
  test.loss.label_smoothing = pick(random, {0.0, 0.1});
  test.batch = random_batch(samples, steps, test.network.channels, classes, activity, RandomStream(number, "batch"));
  const Liveliness liveliness = number % 13 == 5   ? Liveliness::silent
                                : number % 13 == 7 ? Liveliness::all_fire
                                                   : Liveliness::ordinary;
  test.parameters = random_parameters(test.network, activity, liveliness, RandomStream(number, "parameters"));
  if (number % 11 == 3) test.window_low = -100.0;
  return test;
}

class RandomCases : public ::testing::TestWithParam<EngineMode> {};

TEST_P(RandomCases, GradientEqualsTheDenseFloat64Reference) {
  Totals totals;
  for (std::uint64_t number = 0; number < 260; ++number) {
    SCOPED_TRACE("case " + std::to_string(number));
    check_gradient(random_case(number), GetParam(), 1 + static_cast<int>(number % 3), totals);
    if (::testing::Test::HasFatalFailure()) return;
  }
  RecordProperty("decisions_that_differ_in_float64", static_cast<int>(totals.differing));
  // Rounding decides a few in a hundred thousand, not more.
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
  EXPECT_GT(totals.decisions, 1'000'000u);
}

INSTANTIATE_TEST_SUITE_P(Modes, RandomCases,
                         ::testing::Values(EngineMode::sparse, EngineMode::dense, EngineMode::automatic),
                         [](const auto& mode) {
                           return mode.param == EngineMode::sparse  ? "sparse"
                                  : mode.param == EngineMode::dense ? "dense"
                                                                    : "auto";
                         });

TEST_P(RandomCases, GradientOfAnyNeuronAndItsLearnedConstantsEqualsTheReference) {
  Totals totals;
  for (std::uint64_t number = 1000; number < 1200; ++number) {
    SCOPED_TRACE("case " + std::to_string(number));
    check_gradient(random_case(number, true), GetParam(), 1 + static_cast<int>(number % 3), totals);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
  EXPECT_GT(totals.decisions, 500'000u);
}

/// random_case, with something done to the spikes on their way to the next layer.
Case changed_lists_case(std::uint64_t number) {
  Case test = random_case(number, number % 2 == 0);
  RandomStream random(number, "outgoing");
  for (std::size_t l = 0; l + 1 < test.network.layers.size(); ++l) {
    LayerSpec& layer = test.network.layers[l];
    if (!layer.spiking()) continue;
    if (!layer.recurrent) layer.spike_budget = pick(random, {0, 0, 1, 2, 5, 20});
    layer.dropout = pick(random, {0.0, 0.0, 0.2, 0.5, 0.9});
    const double steps = test.batch.steps;
    layer.delay_steps =
        pick(random, {Range{0, 0}, Range{0, 0}, Range{1, 1}, Range{0, 3}, Range{2, 9}, Range{0, steps}});
    test.parameters.layers[l].delay = random_delays(layer, random);
  }
  // Whose maximum is where, the engine shows by a forward pass without dropout.
  if (test.loss.over == LossOver::max) test.loss.over = LossOver::mean;
  return test;
}

/// random_case, whose layers take their spikes from some of all earlier ones and the data.
Case skip_case(std::uint64_t number) {
  Case test = random_case(number);
  NetworkSpec& network = test.network;
  RandomStream random(number, "skip");
  std::vector<bool> used(network.layers.size(), false);
  std::size_t fed_by_spikes = 0;
  while (fed_by_spikes < network.layers.size() && (fed_by_spikes == 0 || network.layers[fed_by_spikes - 1].spiking()))
    ++fed_by_spikes;
  for (std::size_t l = 0; l < fed_by_spikes; ++l) {
    std::vector<std::string> names;
    for (std::size_t source = 0; source < l; ++source) {
      const bool needed = l + 1 == fed_by_spikes && !used[source];
      if (!needed && random.below(2) == 0) continue;
      names.push_back(network.layers[source].name);
      used[source] = true;
    }
    if (names.empty() || random.below(3) == 0) names.push_back(kDataInput);
    const std::vector<std::uint32_t> order = random.permutation(names.size());
    for (const std::uint32_t i : order) network.layers[l].inputs.push_back(names[i]);
    if (!network.layers[l].spiking() || l + 1 == network.layers.size()) continue;
    if (!network.layers[l].recurrent) network.layers[l].spike_budget = pick(random, {0, 0, 3});
    network.layers[l].delay_steps = pick(random, {Range{0, 0}, Range{0, 0}, Range{0, 3}});
  }
  validate(network);
  test.parameters = random_parameters(network, 0.05, Liveliness::ordinary, RandomStream(number, "parameters"));
  return test;
}

TEST_P(RandomCases, GradientThroughSkipConnectionsEqualsTheDenseFloat64Reference) {
  Totals totals;
  int joined = 0;
  for (std::uint64_t number = 2000; number < 2260; ++number) {
    SCOPED_TRACE("case " + std::to_string(number));
    const Case test = skip_case(number);
    for (const LayerSpec& layer : test.network.layers) joined += layer.inputs.size() > 1;
    check_gradient(test, GetParam(), 1 + static_cast<int>(number % 3), totals);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(joined, 100);
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
}

TEST_P(RandomCases, GradientThroughChangedListsEqualsTheDenseFloat64Reference) {
  Totals totals;
  for (std::uint64_t number = 1000; number < 1260; ++number) {
    SCOPED_TRACE("case " + std::to_string(number));
    check_gradient(changed_lists_case(number), GetParam(), 1 + static_cast<int>(number % 3), totals);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
}

TEST(Bf16, GradientThroughChangedListsEqualsTheDenseFloat64ReferenceOnRoundedWeights) {
  Totals totals;
  for (std::uint64_t number = 1000; number < 1060; ++number) {
    SCOPED_TRACE("case " + std::to_string(number));
    check_gradient(changed_lists_case(number), EngineMode::sparse, 2, totals, EnginePrecision::bf16);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
}

TEST(Bf16, GradientEqualsTheDenseFloat64ReferenceOnRoundedWeights) {
  Totals totals;
  for (std::uint64_t number = 0; number < 130; ++number) {
    SCOPED_TRACE("case " + std::to_string(number));
    check_gradient(random_case(number), EngineMode::sparse, 2, totals, EnginePrecision::bf16);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
}

/// Every reset x surrogate x window x gradient through the reset, on one net of three layers, one of them recurrent.
TEST(EveryNeuronSetting, GradientEqualsTheDenseFloat64Reference) {
  Totals totals;
  std::uint64_t number = 0;
  for (const ResetKind reset :
       {ResetKind::zero, ResetKind::subtract, ResetKind::subtract_after_decay, ResetKind::none}) {
    for (const SurrogateKind surrogate : {SurrogateKind::superspike, SurrogateKind::triangle, SurrogateKind::box,
                                          SurrogateKind::quadratic, SurrogateKind::arctan}) {
      for (const double low : {0.9, -100.0}) {
        for (const bool reset_gradient : {false, true}) {
          Case test;
          test.network.channels = 45;
          for (const char* name : {"hidden1", "hidden2"}) {
            LayerSpec& layer = test.network.layers.emplace_back(lif_layer(name, 67));
            layer.reset = reset;
            layer.reset_gradient = reset_gradient;
            layer.surrogate.kind = surrogate;
            layer.surrogate.beta = surrogate == SurrogateKind::quadratic ? 2.0 : 10.0;
            layer.surrogate.window_low = low;
            layer.membrane.decay = {0.8, 0.9};
          }
          test.network.layers[number % 2].recurrent = true;
          test.network.layers.push_back(readout_layer("output", 10, NeuronKind::leaky_integrator));
          test.batch = random_batch(9, 30, 45, 10, 0.1, RandomStream(number, "batch"));
          test.parameters =
              random_parameters(test.network, 0.1, Liveliness::ordinary, RandomStream(number, "parameters"));
          SCOPED_TRACE("case " + std::to_string(number++));
          check_gradient(test, EngineMode::sparse, 2, totals);
        }
      }
    }
  }
  EXPECT_EQ(number, 80u);
}

}  // namespace
}  // namespace spikeloom::testing
