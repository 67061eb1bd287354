// What a run's bits must not depend on: threads, placement, grouping, instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "engine/engine.hpp"
#include "kernels/kernels.hpp"
#include "random_case.hpp"
#include "train/losses.hpp"
#include "train/optimizer.hpp"

namespace spikeloom::testing {
namespace {

enum class Net {
  feed_forward,
  linear_on_integrator,
  recurrent,
  adaptive,
  changed_lists,
  skip,
  feedback,
  dropped_feedback
};

/// Nets with every kind of layer that training knows: two spiking layers of several tiles each, and a readout.
Case training_case(Net net) {
  const bool linear_on_integrator = net == Net::linear_on_integrator;
  Case test;
  test.network.channels = 130;
  test.network.layers.push_back(lif_layer("hidden1", 200));
  test.network.layers.push_back(lif_layer("hidden2", 150));
  test.network.layers[1].reset_gradient = true;
  test.network.layers[1].reset = ResetKind::subtract;
  test.network.layers[0].recurrent = test.network.layers[1].recurrent = net == Net::recurrent;
  if (net == Net::adaptive) {
    LayerSpec &first = test.network.layers[0], &second = test.network.layers[1];
    first.neuron = NeuronKind::adlif;
    first.recurrent = true;
    first.adapt_membrane = {0.0, 0.1};
    first.adapt_spike = {0.0, 0.5};
    first.learn = {NeuronParameter::decay, NeuronParameter::adapt_membrane, NeuronParameter::adapt_spike};
    second.neuron = NeuronKind::alif;
    second.reset_gradient = false;
    second.learn = {NeuronParameter::threshold, NeuronParameter::decay_adapt};
  }
  test.network.layers[0].rate_upper_weight = 1.0;
  test.network.layers[0].rate_upper = 0.01;
  if (net == Net::changed_lists) {
    test.network.layers[0].spike_budget = 7;
    test.network.layers[0].dropout = 0.3;
    test.network.layers[0].delay_steps = {0.0, 5.0};
    test.network.layers[1].recurrent = true;
    test.network.layers[1].dropout = 0.2;
  }
  if (net == Net::skip) {
    test.network.layers[1].inputs = {"hidden1", "data"};
    test.network.layers[1].recurrent = true;
    test.network.layers[0].spike_budget = 7;
  }
  if (net == Net::feedback) {
    test.network.layers[0].inputs = {"hidden2", "data"};
    test.network.layers[0].learn = {NeuronParameter::decay};
    test.network.layers[1].recurrent = true;
    test.network.layers[1].inputs = {"data", "hidden1"};
  }
  if (net == Net::dropped_feedback) {
    test.network.layers.push_back(lif_layer("hidden3", 70));
    test.network.layers[1].inputs = {"hidden3", "hidden1"};
    for (LayerSpec& layer : test.network.layers) layer.dropout = 0.3;
  }
  if (linear_on_integrator)
    test.network.layers.push_back(readout_layer("integrator", 90, NeuronKind::leaky_integrator));
  test.network.layers.push_back(
      readout_layer("output", 20, linear_on_integrator ? NeuronKind::linear : NeuronKind::leaky_integrator));
  if (net == Net::skip) test.network.layers[2].inputs = {"hidden2", "data", "hidden1"};
  test.batch = random_batch(17, 40, 130, 20, 0.05, RandomStream(5, "batch"));
  test.parameters = random_parameters(test.network, 0.05, Liveliness::ordinary, RandomStream(5, "parameters"));
  return test;
}

struct TrainingSetup {
  EngineMode mode = EngineMode::sparse;
  int workers = 1;
  double gradient_clip = 0.0;
  std::function<void(Plan&)> change_plan = [](Plan&) {};
  EnginePrecision precision = EnginePrecision::fp32;
};

/// Twenty AdamW steps; all weights, biases one after the other.
std::vector<float> trained(const Case& test, const TrainingSetup& setup) {
  WorkerTeam team(setup.workers, false);
  Plan plan = make_plan(test.network, setup.mode, setup.workers, setup.precision);
  setup.change_plan(plan);
  Engine engine(test.network, plan, team);
  engine.import_parameters(test.parameters);
  OptimizerSpec spec;
  spec.learning_rate = 5e-3;
  spec.weight_decay = 0.01;
  Optimizer optimizer(spec, engine);
  const auto loss = make_readout_loss(test.loss, test.network);
  for (int step = 0; step < 20; ++step) {
    optimizer.begin_step(spec.learning_rate);
    engine.set_dropout({1, static_cast<std::uint64_t>(step), 0});
    engine.train_step(test.batch, *loss, optimizer, setup.gradient_clip);
  }
  std::vector<float> all;
  for (const LayerParameters& layer : engine.export_parameters().layers) {
    all.insert(all.end(), layer.weight.begin(), layer.weight.end());
    all.insert(all.end(), layer.recurrent_weight.begin(), layer.recurrent_weight.end());
    all.insert(all.end(), layer.bias.begin(), layer.bias.end());
    for (const NeuronParameter parameter : kNeuronParameters)
      all.insert(all.end(), layer.of(parameter).begin(), layer.of(parameter).end());
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Determinism : public ::testing::TestWithParam<std::tuple<EngineMode, Net>> {
 protected:
  EngineMode mode() const { return std::get<0>(GetParam()); }
  Case test_ = training_case(std::get<1>(GetParam()));
};

TEST_P(Determinism, WeightsAfterTwentyStepsAreTheSameForAnyNumberOfThreads) {
  for (const double clip : {0.0, 0.05}) {
    const std::vector<float> one = trained(test_, {mode(), 1, clip});
    for (const int workers : {2, 3, 7})
      EXPECT_TRUE(same_bits(one, trained(test_, {mode(), workers, clip}))) << workers << " threads, clip " << clip;
  }
}

/// Tiles to any of three workers, and some of those that can be split cut at random.
void share_at_random(const NetworkSpec& network, Plan& plan, std::uint64_t seed) {
  RandomStream random(seed, "owners");
  std::vector<bool> whole(plan.layers.size(), false);
  for (const std::vector<int>& part : network.connected_parts()) {
    for (const int l : part) whole[l] = part.size() > 1 || network.layers[l].recurrent || !network.layers[l].spiking();
  }
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    LayerPlan& layer = plan.layers[l];
    const bool split = !whole[l];
    layer.shares.clear();
    for (int tile = 0; tile < layer.tiles; ++tile) {
      constexpr int kParts = 5;
      for (int first = 0; first < kParts;) {
        const int most = kParts - first;
        const int count = split && random.below(2) == 0 ? 1 + static_cast<int>(random.below(most)) : most;
        layer.shares.push_back({tile, static_cast<int>(random.below(3)), first, first + count, kParts});
        first += count;
      }
    }
  }
}

TEST_P(Determinism, WeightsDoNotDependOnWhoOwnsWhichPartOfATile) {
  const std::vector<float> usual = trained(test_, {mode(), 3});
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const auto shuffle = [&](Plan& plan) {
      share_at_random(test_.network, plan, seed);
      if (seed % 2 == 1) plan.delta_rows = 100, plan.shared_delta_bytes = 1 << 15;
    };
    EXPECT_TRUE(same_bits(usual, trained(test_, {mode(), 3, 0.0, shuffle}))) << "assignment " << seed;
  }
}

TEST_P(Determinism, WeightsDoNotDependOnGroupSizes) {
  const std::vector<float> usual = trained(test_, {mode(), 2});
  for (const int rows : {1, 40, 200, 100000}) {
    for (const std::size_t budget : {std::size_t{1}, std::size_t{1} << 15}) {
      const auto groups = [=](Plan& plan) {
        plan.delta_rows = rows;
        for (LayerPlan& layer : plan.layers) layer.partial_budget_bytes = budget;
        plan.recurrent_samples = 1 + rows / 40, plan.recurrent_delta_bytes = plan.shared_delta_bytes = 4 * budget;
      };
      EXPECT_TRUE(same_bits(usual, trained(test_, {mode(), 2, 0.0, groups})))
          << rows << " rows, " << budget << " bytes";
    }
  }
}

TEST_P(Determinism, WeightsFromChunksDependOnNeitherThreadsNorGroupsNorOwners) {
  const auto change = [&](int workers) {
    return [this, workers](Plan& plan) {
      plan.bptt_steps = 13;
      plan.delta_rows = 30 * workers;
      for (LayerPlan& layer : plan.layers) layer.partial_budget_bytes = 3000 * workers;
      plan.recurrent_samples = workers;
      plan.recurrent_delta_bytes = plan.shared_delta_bytes = 12000 * workers;
      if (workers == 3) share_at_random(test_.network, plan, 1);
    };
  };
  constexpr double kClip = 0.05;
  const std::vector<float> one = trained(test_, {mode(), 1, kClip, [](Plan& plan) { plan.bptt_steps = 13; }});
  EXPECT_FALSE(same_bits(one, trained(test_, {mode(), 1, kClip}))) << "truncation changes nothing?";
  for (const int workers : {2, 3})
    EXPECT_TRUE(same_bits(one, trained(test_, {mode(), workers, kClip, change(workers)}))) << workers << " threads";
}

TEST_P(Determinism, TrainingChangesTheWeights) {
  const std::vector<float> after = trained(test_, {mode(), 1});
  std::size_t changed = 0;
  for (std::size_t i = 0; i < test_.parameters.layers[0].weight.size(); ++i)
    changed += after[i] != test_.parameters.layers[0].weight[i];
  EXPECT_GT(changed, test_.parameters.layers[0].weight.size() / 2);
}

TEST_P(Determinism, LearnedConstantsChangeAndStayWithinTheirLimits) {
  WorkerTeam team(2, false);
  Engine engine(test_.network, make_plan(test_.network, mode(), 2), team);
  engine.import_parameters(test_.parameters);
  OptimizerSpec spec;
  Optimizer optimizer(spec, engine);
  const auto loss = make_readout_loss(test_.loss, test_.network);
  for (int step = 0; step < 5; ++step) {
    optimizer.begin_step(0.1);  // far enough to meet the limits
    engine.train_step(test_.batch, *loss, optimizer, 0.0);
  }
  const Parameters after = engine.export_parameters();
  for (std::size_t l = 0; l < test_.network.layers.size(); ++l) {
    const LayerSpec& layer = test_.network.layers[l];
    for (const NeuronParameter parameter : kNeuronParameters) {
      const std::vector<float>& values = after.layers[l].of(parameter);
      if (!layer.learns(parameter)) {
        EXPECT_EQ(values, test_.parameters.layers[l].of(parameter));
        continue;
      }
      EXPECT_NE(values, test_.parameters.layers[l].of(parameter));
      const Range limits = limits_of(layer, parameter);
      for (const float value : values) {
        EXPECT_GE(value, static_cast<float>(limits.low));
        EXPECT_LE(value, static_cast<float>(limits.high));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Determinism,
    ::testing::Combine(::testing::Values(EngineMode::sparse, EngineMode::dense, EngineMode::automatic),
                       ::testing::Values(Net::feed_forward, Net::linear_on_integrator, Net::recurrent, Net::adaptive,
                                         Net::changed_lists, Net::skip, Net::feedback, Net::dropped_feedback)));

class StepSchedules : public ::testing::TestWithParam<Net> {};
INSTANTIATE_TEST_SUITE_P(Nets, StepSchedules,
                         ::testing::Values(Net::recurrent, Net::adaptive, Net::feedback, Net::dropped_feedback));

TEST_P(StepSchedules, ChangeNoBit) {
  const Case test = training_case(GetParam());
  for (const EngineMode mode : {EngineMode::sparse, EngineMode::dense}) {
    const std::vector<float> usual = trained(test, {mode, 1});
    for (const StepSchedule schedule : {StepSchedule::sample_major, StepSchedule::step_major}) {
      for (const int workers : {1, 2, 5}) {
        const auto change = [=](Plan& plan) {
          for (LayerPlan& layer : plan.layers) layer.step_schedule = schedule;
          plan.recurrent_samples = 4 * workers;
        };
        EXPECT_TRUE(same_bits(usual, trained(test, {mode, workers, 0.0, change})))
            << workers << " threads, schedule " << static_cast<int>(schedule);
      }
    }
  }
}

TEST(StepSchedule, FollowsFromTheNetworkAlone) {
  const auto schedule_of = [](int size, int workers) {
    NetworkSpec network;
    network.channels = 10;
    network.layers.push_back(lif_layer("hidden", size));
    network.layers.back().recurrent = true;
    return make_plan(network, EngineMode::sparse, workers).layers[0].step_schedule;
  };
  for (const int workers : {1, 2, 64}) {
    EXPECT_EQ(schedule_of(256, workers), StepSchedule::sample_major);
    EXPECT_EQ(schedule_of(1024, workers), StepSchedule::step_major);
  }
}

TEST(Bf16, WeightsDoNotDependOnThreadsNorGroupSizes) {
  for (const Net net : {Net::feed_forward, Net::changed_lists}) {
    const Case test = training_case(net);
    TrainingSetup setup{.precision = EnginePrecision::bf16};
    const std::vector<float> one = trained(test, setup);
    EXPECT_FALSE(same_bits(one, trained(test, {}))) << "bf16 is no other computation than fp32?";
    setup.change_plan = [](Plan& plan) {
      plan.delta_rows = 70;
      for (LayerPlan& layer : plan.layers) layer.partial_budget_bytes = 1 << 15;
    };
    for (const int workers : {2, 3}) {
      setup.workers = workers;
      EXPECT_TRUE(same_bits(one, trained(test, setup))) << workers << " threads";
    }
  }
}

class InstructionSets : public ::testing::TestWithParam<EnginePrecision> {
 protected:
  void TearDown() override {
    kernels::limit_to_target("");
    kernels::use_bf16_dot(kernels::Bf16Dot::where_it_pays);
  }
};

TEST_P(InstructionSets, WeightsAreTheSameOnAllThatHaveFma) {
  Case test = training_case(GetParam() == EnginePrecision::fp32 ? Net::recurrent : Net::feed_forward);
  test.network.layers[1].recurrent = false;  // both kinds of layer
  test.parameters.layers[1].recurrent_weight.clear();
  std::vector<float> first;
  int compared = 0;
  for (const std::string& target : kernels::available_targets()) {
    if (target.starts_with("SS")) continue;  // SSE: no FMA, other bits by design
    kernels::limit_to_target(target);
    for (const auto use : {kernels::Bf16Dot::never, kernels::Bf16Dot::always}) {
      kernels::use_bf16_dot(use);
      const std::vector<float> weights =
          trained(test, {.mode = EngineMode::sparse, .workers = 2, .precision = GetParam()});
      if (first.empty()) first = weights;
      EXPECT_TRUE(same_bits(first, weights)) << target;
    }
    ++compared;
  }
  if (compared < 2) GTEST_SKIP() << "this CPU has only " << compared << " instruction set with FMA";
}

INSTANTIATE_TEST_SUITE_P(Precisions, InstructionSets, ::testing::Values(EnginePrecision::fp32, EnginePrecision::bf16),
                         [](const auto& precision) {
                           return precision.param == EnginePrecision::fp32 ? "fp32" : "bf16";
                         });

}  // namespace
}  // namespace spikeloom::testing
