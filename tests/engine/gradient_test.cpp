// The gradient of the sparse engine is that of the dense float64 reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "engine/engine.hpp"
#include "engine/reference.hpp"
#include "random_case.hpp"
#include "train/loss_formulas.hpp"
#include "train/losses.hpp"

namespace spikeloom::testing {
namespace {

/// The reference's loss from the formulas that the fast path uses too, looking at the fast path's maximum steps.
template <class Number>
ReferenceLoss<Number> reference_loss(const Case& test, const std::vector<std::vector<int>>& max_steps) {
  const LayerSpec& last = test.network.layers.back();
  const int steps = test.batch.steps, classes = last.size;
  return [&test, &max_steps, &last, steps, classes](int sample, const Number* output, Number* gradient, int label,
                                                    Number scale) {
    if (last.spiking()) {
      std::vector<std::uint32_t> counts(classes);
      for (int c = 0; c < classes; ++c) counts[c] = static_cast<std::uint32_t>(output[c]);
      return count_loss<Number>(test.loss, counts.data(), gradient, steps, classes, label, static_cast<double>(scale))
          .loss;
    }
    MembraneLoss<Number> loss;
    const int* forced = max_steps.empty() ? nullptr : max_steps[sample].data();
    return loss
        .evaluate(test.loss, output, gradient, steps, classes, classes, label, static_cast<double>(scale), forced)
        .loss;
  };
}

template <class Number>
double norm_of_difference(const std::vector<Number>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i)
    sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum);
}

double norm(const std::vector<double>& a) { return norm_of_difference(std::vector<double>(a.size(), 0.0), a); }

/// Deltas in bf16 have a relative error of up to 2^-9, and it falls anywhere in that; each layer that they come through
/// adds its own.
double bf16_tolerance(std::size_t layers) {
  return std::max(5e-3, std::pow(1.0 + std::ldexp(1.0, -9), static_cast<double>(layers)) - 1.0);
}

/// `fast`, `single` and `exact` are one parameter's gradients by the engine, by dense float32 and by dense float64.
void expect_close(const std::string& name, std::size_t half_layers, const std::vector<float>& fast,
                  const std::vector<float>& single, const std::vector<double>& exact) {
  ASSERT_EQ(fast.size(), exact.size()) << name;
  const double size = norm(exact);
  if (size < 1e-30) {
    EXPECT_LT(norm_of_difference(fast, exact), 1e-25) << name << ": the exact gradient is zero";
    return;
  }
  const double error = norm_of_difference(fast, exact) / size;
  const double single_error = norm_of_difference(single, exact) / size;
  if (half_layers > 0) {
    EXPECT_LE(error, bf16_tolerance(half_layers)) << name;
    return;
  }
  EXPECT_LE(error, std::min(1e-4, std::max(1e-5, 3.0 * single_error)))
      << name << ": dense float32 has " << single_error;
}

struct Totals {
  std::uint64_t decisions = 0;
  std::uint64_t differing = 0;
};

/// The weights as the list passes of `plan` read them.
Parameters as_read(const Plan& plan, Parameters parameters) {
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    if (!plan.layers[l].half_rows) continue;
    for (float& weight : parameters.layers[l].weight) {
      int exponent;
      const double mantissa = std::frexp(static_cast<double>(weight), &exponent);
      weight = static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
    }
  }
  return parameters;
}

/// Runs the engine in `mode` and compares. Adds to `totals` how many decisions fell differently in float64.
void check_gradient(const Case& test, EngineMode mode, int workers, Totals& totals,
                    EnginePrecision precision = EnginePrecision::fp32) {
  WorkerTeam team(workers, false);
  Plan plan = make_plan(test.network, mode, workers, precision);
  plan.delta_rows = 64;
  for (LayerPlan& layer : plan.layers) layer.partial_budget_bytes = 1 << 16;
  plan.recurrent_samples = 5;
  plan.recurrent_delta_bytes = plan.shared_delta_bytes = 1 << 18;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    plan.layers[l].step_schedule = (l + workers) % 2 == 0 ? StepSchedule::sample_major : StepSchedule::step_major;
  }
  Engine engine(test.network, plan, team);
  engine.import_parameters(test.parameters);
  engine.set_window_low(test.window_low);
  const DropoutDraw dropout{7, 3, 5};
  engine.set_dropout(dropout);
  const auto loss = make_readout_loss(test.loss, test.network);
  Parameters gradient;
  const BatchResult result = engine.gradient(test.batch, *loss, gradient);

  std::vector<ForcedDecisions> forced;
  for (std::size_t l = 0; l < test.network.layers.size(); ++l) {
    if (test.network.layers[l].spiking())
      forced.push_back({engine.spikes(static_cast<int>(l)), engine.active(static_cast<int>(l))});
  }
  std::vector<std::vector<int>> max_steps;
  const int classes = test.network.outputs();
  if (!test.network.layers.back().spiking()) {
    const LayerRecord record = engine.record(test.batch, static_cast<int>(test.network.layers.size()) - 1, false, true);
    for (int s = 0; s < test.batch.samples; ++s) {
      max_steps.push_back(
          find_max_steps(record.membrane.data() + static_cast<std::size_t>(s) * test.batch.steps * classes,
                         test.batch.steps, classes, classes));
    }
  }
  const Parameters parameters = as_read(plan, test.parameters);
  const auto exact = reference_step<double>(test.network, parameters, test.batch,
                                            reference_loss<double>(test, max_steps), forced, test.window_low, dropout);
  const auto single = reference_step<float>(test.network, parameters, test.batch,
                                            reference_loss<float>(test, max_steps), forced, test.window_low, dropout);
  EXPECT_NEAR(result.loss, exact.loss, 1e-5 * std::max(1.0, std::fabs(exact.loss)));
  EXPECT_NEAR(result.regulariser, exact.regulariser, 1e-6 * std::max(1.0, exact.regulariser));
  // A decision may only differ where the membrane is at the edge, to rounding.
  EXPECT_LT(exact.farthest_difference, 1e-4);
  totals.differing += exact.differing_decisions;
  for (std::size_t l = 0; l < test.network.layers.size(); ++l) {
    if (test.network.layers[l].spiking()) totals.decisions += test.batch.rows() * test.network.layers[l].size;
    const std::string& name = test.network.layers[l].name;
    const auto half_layers = static_cast<std::size_t>(std::count_if(
        plan.layers.begin() + l, plan.layers.end(), [](const LayerPlan& layer) { return layer.half_rows; }));
    expect_close(name + ".weight", half_layers, gradient.layers[l].weight, single.weight_gradient[l],
                 exact.weight_gradient[l]);
    if (test.network.layers[l].recurrent) {
      expect_close(name + ".recurrent_weight", half_layers, gradient.layers[l].recurrent_weight,
                   single.recurrent_weight_gradient[l], exact.recurrent_weight_gradient[l]);
    }
    for (const auto& [parameter, exact_gradient] : exact.neuron_gradient[l]) {
      expect_close(name + "." + std::string(name_of(kind_of(parameter))), half_layers, gradient.layers[l].of(parameter),
                   single.neuron_gradient[l].at(parameter), exact_gradient);
    }
    if (test.network.layers[l].bias)
      expect_close(name + ".bias", half_layers, gradient.layers[l].bias, single.bias_gradient[l],
                   exact.bias_gradient[l]);
  }
}

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
