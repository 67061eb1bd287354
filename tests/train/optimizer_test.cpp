#include "train/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <spikeloom/error.hpp>

#include "core/random.hpp"

namespace spikeloom {
namespace {

constexpr BlockId kWeights{0, 0, ParameterKind::weight};
constexpr BlockId kRecurrentWeights{0, 0, ParameterKind::recurrent_weight};
constexpr BlockId kBiases{0, 0, ParameterKind::bias};

/// torch.optim's three optimisers, one parameter at a time, in double.
struct NaiveOptimizer {
  OptimizerSpec spec;
  double m = 0.0, v = 0.0;
  int t = 0;

  double step(double value, double gradient, double learning_rate, bool bias) {
    ++t;
    const double decay = bias ? 0.0 : spec.weight_decay;
    if (spec.kind == OptimizerKind::sgd) {
      gradient += decay * value;
      m = t == 1 ? gradient : spec.momentum * m + gradient;
      return value - learning_rate * m;
    }
    if (spec.kind == OptimizerKind::adamw) value *= 1.0 - learning_rate * decay;
    if (spec.kind == OptimizerKind::adam) gradient += decay * value;
    m = spec.beta1 * m + (1.0 - spec.beta1) * gradient;
    v = spec.beta2 * v + (1.0 - spec.beta2) * gradient * gradient;
    const double denominator = std::sqrt(v) / std::sqrt(1.0 - std::pow(spec.beta2, t)) + spec.epsilon;
    return value - learning_rate / (1.0 - std::pow(spec.beta1, t)) * m / denominator;
  }
};

class EveryOptimizer : public testing::TestWithParam<OptimizerKind> {};

TEST_P(EveryOptimizer, FollowsTheNaiveDoubleOne) {
  OptimizerSpec spec;
  spec.kind = GetParam();
  spec.weight_decay = 0.1;
  constexpr std::size_t kCount = 37;
  Optimizer optimizer(spec, {{kWeights, kCount}, {kRecurrentWeights, kCount}, {kBiases, kCount}});
  RandomStream random(5, "test");
  for (const BlockId block : {kWeights, kRecurrentWeights, kBiases}) {
    optimizer.set_steps(0);
    std::vector<NaiveOptimizer> naive(kCount, NaiveOptimizer{spec});
    std::vector<float> values(kCount);
    for (float& value : values) value = static_cast<float>(random.normal());
    std::vector<double> exact(values.begin(), values.end());
    for (int step = 0; step < 50; ++step) {
      const double rate = 1e-2 / (1 + step);
      std::vector<float> gradient(kCount);
      for (float& g : gradient) g = static_cast<float>(random.normal());
      optimizer.begin_step(rate);
      optimizer.apply(block, 0, values.data(), gradient.data(), kCount);
      const bool bias = block.parameter == ParameterKind::bias;
      for (std::size_t i = 0; i < kCount; ++i) exact[i] = naive[i].step(exact[i], gradient[i], rate, bias);
    }
    for (std::size_t i = 0; i < kCount; ++i) EXPECT_NEAR(values[i], exact[i], 3e-6 * (1.0 + std::fabs(exact[i])));
  }
}

TEST_P(EveryOptimizer, LeavesAParameterThatNeverHadAGradientAtZero) {
  OptimizerSpec spec;
  spec.kind = GetParam();
  spec.weight_decay = 0.1;
  Optimizer optimizer(spec, {{kWeights, 5}});
  std::vector<float> values(5, 0.0F);
  const std::vector<float> gradient(5, 0.0F);
  for (int step = 0; step < 10; ++step) {
    optimizer.begin_step(0.1);
    optimizer.apply(kWeights, 0, values.data(), gradient.data(), 5);
  }
  EXPECT_EQ(values, std::vector<float>(5, 0.0F));
}

TEST_P(EveryOptimizer, NamesLayerParameterAndStepOfANan) {
  NetworkSpec network;
  network.layers.resize(1);
  network.layers[0].name = "hidden";
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    OptimizerSpec spec;
    spec.kind = GetParam();
    Optimizer optimizer(spec, {{kWeights, 9}, {kBiases, 3}});
    std::vector<float> values(3, 1.0F);
    std::vector<float> gradient(3, 1.0F);
    optimizer.begin_step(0.1);
    optimizer.apply(kBiases, 0, values.data(), gradient.data(), 3);
    EXPECT_NO_THROW(optimizer.check(network));
    optimizer.begin_step(0.1);
    gradient[1] = bad;
    optimizer.apply(kBiases, 0, values.data(), gradient.data(), 3);
    try {
      optimizer.check(network);
      FAIL() << "not found";
    } catch (const NumericalError& error) {
      EXPECT_NE(std::string(error.what()).find("hidden.bias"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("step 2"), std::string::npos);
    }
  }
}

TEST_P(EveryOptimizer, FindsAValueThatOverflowed) {
  NetworkSpec network;
  network.layers.resize(1);
  network.layers[0].name = "hidden";
  OptimizerSpec spec;
  spec.kind = GetParam();
  Optimizer optimizer(spec, {{kWeights, 2}});
  std::vector<float> values = {3e38F, 0.0F};
  const std::vector<float> gradient = {-1.0F, 0.0F};
  optimizer.begin_step(3e38);
  optimizer.apply(kWeights, 0, values.data(), gradient.data(), 2);
  EXPECT_THROW(optimizer.check(network), NumericalError);
}

TEST_P(EveryOptimizer, NeverKeepsSubnormalMoments) {
  OptimizerSpec spec;
  spec.kind = GetParam();
  Optimizer optimizer(spec, {{kWeights, 4}});
  std::vector<float> values(4, 1.0F);
  const std::vector<float> kick = {1e-3F, -1e-20F, 1e-25F, 1e-12F};
  const std::vector<float> nothing(4, 0.0F);
  for (int step = 0; step < 3000; ++step) {
    optimizer.begin_step(1e-3);
    optimizer.apply(kWeights, 0, values.data(), step == 0 ? kick.data() : nothing.data(), 4);
    for (std::size_t moment = 0; moment < optimizer.moment_names().size(); ++moment) {
      const float* state = optimizer.moment_blocks(moment, 0, ParameterKind::weight)[0];
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(state[i] == 0.0F || std::isnormal(state[i])) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer,
                         testing::Values(OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd));

TEST(Optimizer, RefusesAnEpsilonOfZero) {
  OptimizerSpec spec;
  spec.epsilon = 0.0;
  EXPECT_THROW(Optimizer(spec, {{kWeights, 1}}), UserError);
}

}  // namespace
}  // namespace spikeloom
