// The gradient of the sparse engine is that of the dense float64 reference.
#include <gtest/gtest.h>

#include "gradient_check.hpp"
#include "random_networks.hpp"

namespace spikeloom::testing {
namespace {

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
