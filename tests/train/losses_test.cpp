#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <spikeloom/error.hpp>

#include "core/random.hpp"
#include "train/loss_formulas.hpp"
#include "train/losses.hpp"

namespace spikeloom {
namespace {

constexpr LossOver kEveryOver[] = {LossOver::steps, LossOver::steps_sum, LossOver::softmax_sum,
                                   LossOver::mean,  LossOver::max,       LossOver::last};

/// A trace of membranes with padding that must stay as it is.
struct Trace {
  Trace(int steps_, int classes_, int stride_, std::uint64_t seed, double spread = 2.0)
      : steps(steps_), classes(classes_), stride(stride_), values(static_cast<std::size_t>(steps_) * stride_, -7.0) {
    RandomStream random(seed, "trace");
    for (int t = 0; t < steps; ++t) {
      for (int c = 0; c < classes; ++c) at(t, c) = static_cast<float>(spread * random.normal());
    }
  }
  double& at(int t, int c) { return values[static_cast<std::size_t>(t) * stride + c]; }
  std::vector<float> floats() const { return {values.begin(), values.end()}; }
  int steps, classes, stride;
  std::vector<double> values;
};

double loss_at(const LossSpec& spec, const Trace& trace, int label) {
  return MembraneLoss<double>()
      .evaluate(spec, trace.values.data(), nullptr, trace.steps, trace.classes, trace.stride, label, 1.0)
      .loss;
}

LossSpec spec_of(LossKind kind, LossOver over, double smoothing) {
  LossSpec spec;
  spec.kind = kind;
  spec.over = over;
  spec.label_smoothing = smoothing;
  return spec;
}

TEST(Losses, GradientOfEveryMembraneLossIsTheFiniteDifference) {
  for (const LossKind kind : {LossKind::cross_entropy, LossKind::squared_error}) {
    for (const LossOver over : kEveryOver) {
      for (const double smoothing : {0.0, 0.1}) {
        const LossSpec spec = spec_of(kind, over, smoothing);
        Trace trace(7, 5, 8, 3);
        std::vector<double> gradient(trace.values.size(), 99.0);
        MembraneLoss<double>().evaluate(spec, trace.values.data(), gradient.data(), 7, 5, 8, 2, 0.25);
        for (int t = 0; t < 7; ++t) {
          for (int c = 0; c < 8; ++c) {
            const double g = gradient[t * 8 + c];
            if (c >= 5) {
              EXPECT_EQ(g, 99.0) << "padding was written";
              continue;
            }
            const double middle = trace.at(t, c);
            constexpr double kStep = 1e-5;
            trace.at(t, c) = middle + kStep;
            const double above = loss_at(spec, trace, 2);
            trace.at(t, c) = middle - kStep;
            const double below = loss_at(spec, trace, 2);
            trace.at(t, c) = middle;
            EXPECT_NEAR(g, 0.25 * (above - below) / (2 * kStep), 1e-9)
                << static_cast<int>(kind) << " " << static_cast<int>(over);
          }
        }
      }
    }
  }
}

TEST(Losses, FloatAgreesWithDouble) {
  for (const LossOver over : kEveryOver) {
    for (const int classes : {1, 2, 10, 20, 33}) {
      const LossSpec spec = spec_of(LossKind::cross_entropy, over, 0.05);
      const Trace trace(50, classes, 48, 4, 5.0);
      const std::vector<float> values = trace.floats();
      std::vector<float> fast(values.size(), 0.0F);
      std::vector<double> exact(values.size(), 0.0);
      const SampleResult a =
          MembraneLoss<float>().evaluate(spec, values.data(), fast.data(), 50, classes, 48, classes - 1, 0.1);
      const SampleResult b =
          MembraneLoss<double>().evaluate(spec, trace.values.data(), exact.data(), 50, classes, 48, classes - 1, 0.1);
      EXPECT_NEAR(a.loss, b.loss, 1e-6 * (1.0 + std::fabs(b.loss)));
      EXPECT_EQ(a.decision, b.decision);
      double difference = 0.0;
      double norm = 1e-12;
      for (std::size_t i = 0; i < fast.size(); ++i) {
        difference += (fast[i] - exact[i]) * (fast[i] - exact[i]);
        norm += exact[i] * exact[i];
      }
      EXPECT_LT(std::sqrt(difference / norm), 1e-6) << static_cast<int>(over) << " " << classes;
    }
  }
}

TEST(Losses, CrossEntropyIsRightInACaseDoneByHand) {
  // Two classes, two steps: u = (0, ln 3), (ln 4, 0), label 0.
  const std::vector<double> u = {0.0, std::log(3.0), std::log(4.0), 0.0};
  const auto loss = [&](LossOver over) {
    return MembraneLoss<double>()
        .evaluate(spec_of(LossKind::cross_entropy, over, 0.0), u.data(), nullptr, 2, 2, 2, 0, 1.0)
        .loss;
  };
  EXPECT_NEAR(loss(LossOver::steps_sum), std::log(4.0) + std::log(5.0 / 4.0), 1e-14);
  EXPECT_NEAR(loss(LossOver::steps), (std::log(4.0) + std::log(5.0 / 4.0)) / 2, 1e-14);
  EXPECT_NEAR(loss(LossOver::softmax_sum), std::log1p(std::exp(0.95 - 1.05)), 1e-14);
  EXPECT_NEAR(loss(LossOver::mean), std::log1p(std::sqrt(3.0) / 2.0), 1e-14);
  EXPECT_NEAR(loss(LossOver::max), std::log1p(3.0 / 4.0), 1e-14);
  EXPECT_NEAR(loss(LossOver::last), std::log1p(1.0 / 4.0), 1e-14);
}

TEST(Losses, MaximumTakesTheFirstOfEqualStepsUnlessToldOtherwise) {
  const std::vector<float> u = {1.0F, 0.0F, 1.0F, 2.0F, 0.5F, 2.0F};  // 3 steps, 2 classes
  const LossSpec spec = spec_of(LossKind::cross_entropy, LossOver::max, 0.0);
  std::vector<float> gradient(6, 9.0F);
  MembraneLoss<float>().evaluate(spec, u.data(), gradient.data(), 3, 2, 2, 0, 1.0);
  EXPECT_LT(gradient[0], 0.0F);
  EXPECT_EQ(gradient[2], 0.0F);
  EXPECT_GT(gradient[3], 0.0F);
  EXPECT_EQ(gradient[5], 0.0F);
  const int forced[] = {1, 2};
  MembraneLoss<float>().evaluate(spec, u.data(), gradient.data(), 3, 2, 2, 0, 1.0, forced);
  EXPECT_EQ(gradient[0], 0.0F);
  EXPECT_LT(gradient[2], 0.0F);
  EXPECT_EQ(gradient[3], 0.0F);
  EXPECT_GT(gradient[5], 0.0F);
}

TEST(Losses, FarApartMembranesNeitherOverflowNorLoseTheLabel) {
  const std::vector<float> u = {1e4F, -1e4F, 0.0F, -1e4F, 1e4F, 0.0F};
  std::vector<float> gradient(6);
  for (const LossOver over : kEveryOver) {
    const SampleResult result = MembraneLoss<float>().evaluate(spec_of(LossKind::cross_entropy, over, 0.0), u.data(),
                                                               gradient.data(), 2, 3, 3, 1, 1.0);
    EXPECT_TRUE(std::isfinite(result.loss));
    for (const float g : gradient) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(Losses, ManyClassesOverManyStepsKeepAFiniteLoss) {
  const int classes = 5000;
  const std::vector<float> u(static_cast<std::size_t>(40) * classes, 0.0F);
  const SampleResult result = MembraneLoss<float>().evaluate(spec_of(LossKind::cross_entropy, LossOver::steps, 0.0),
                                                             u.data(), nullptr, 40, classes, classes, 7, 1.0);
  EXPECT_NEAR(result.loss, std::log(5000.0), 1e-6);
}

TEST(Losses, NanInTheMembraneIsNanInTheLoss) {
  for (const LossOver over :
       {LossOver::steps, LossOver::steps_sum, LossOver::softmax_sum, LossOver::mean, LossOver::last}) {
    std::vector<float> u(12, 0.5F);
    u[10] = std::nanf("");
    const SampleResult result =
        MembraneLoss<float>().evaluate(spec_of(LossKind::cross_entropy, over, 0.0), u.data(), nullptr, 4, 3, 3, 0, 1.0);
    EXPECT_TRUE(std::isnan(result.loss)) << static_cast<int>(over);
  }
}

int decision_of(DecisionKind decision, const std::vector<float>& u, int steps, int classes, bool* undecided = nullptr) {
  LossSpec spec;
  spec.decision = decision;
  const SampleResult result = MembraneLoss<float>().evaluate(spec, u.data(), nullptr, steps, classes, classes, 0, 1.0);
  if (undecided) *undecided = result.undecided;
  return result.decision;
}

TEST(Decisions, EachKindLooksAtWhatItSays) {
  // Class 0 wins by a hair in most steps, class 1 has the largest mean, class 2 the last step.
  const std::vector<float> u = {1.0F, 0.9F, 0.0F, 1.0F, 0.9F, 0.0F, 1.0F, 0.9F,
                                0.0F, 0.0F, 5.0F, 0.0F, 0.0F, 0.0F, 0.5F};
  EXPECT_EQ(decision_of(DecisionKind::majority, u, 5, 3), 0);
  EXPECT_EQ(decision_of(DecisionKind::mean, u, 5, 3), 1);
  EXPECT_EQ(decision_of(DecisionKind::max, u, 5, 3), 1);
  EXPECT_EQ(decision_of(DecisionKind::last, u, 5, 3), 2);
  EXPECT_EQ(decision_of(DecisionKind::sum, u, 5, 3), 1);
}

TEST(Decisions, SumOfSoftmaxIsNotTheMeanMembrane) {
  const std::vector<float> u = {2.0F, 0.0F, 2.0F, 0.0F, 0.0F, 9.0F};
  EXPECT_EQ(decision_of(DecisionKind::sum, u, 3, 2), 0);
  EXPECT_EQ(decision_of(DecisionKind::mean, u, 3, 2), 1);
}

TEST(Decisions, SilenceIsUndecidedAndTakesTheLowestClass) {
  const std::vector<float> silent(12, 0.0F);
  for (const DecisionKind kind : {DecisionKind::automatic, DecisionKind::sum, DecisionKind::mean, DecisionKind::max,
                                  DecisionKind::last, DecisionKind::majority}) {
    bool undecided = false;
    EXPECT_EQ(decision_of(kind, silent, 4, 3, &undecided), 0);
    EXPECT_TRUE(undecided);
  }
}

TEST(Decisions, StepsBeforeTheFirstSpikeHaveNoVote) {
  std::vector<float> u(30, 0.0F);  // 10 steps, 3 classes, all silent but the last
  u[29] = 1.0F;
  bool undecided = true;
  EXPECT_EQ(decision_of(DecisionKind::majority, u, 10, 3, &undecided), 2);
  EXPECT_FALSE(undecided);
}

TEST(Decisions, AutomaticForStepsIsTheClassWithTheLeastLoss) {
  const Trace trace(9, 6, 6, 11);
  LossSpec spec;
  double least = 1e9;
  int best = -1;
  for (int label = 0; label < 6; ++label) {
    const double loss = loss_at(spec, trace, label);
    if (loss < least) {
      least = loss;
      best = label;
    }
  }
  EXPECT_EQ(decision_of(DecisionKind::automatic, trace.floats(), 9, 6), best);
}

TEST(SpikeCounts, GradientIsTheFiniteDifference) {
  // Losses of counts are defined on whole numbers; their continuation is compared by a formula of its own here.
  const std::vector<std::uint32_t> counts = {3, 0, 7, 1};
  std::vector<double> gradient(4);
  LossSpec spec;
  spec.kind = LossKind::spike_count;
  count_loss(spec, counts.data(), gradient.data(), 10, 4, 2, 0.5);
  double sum = 0.0;
  for (const std::uint32_t count : counts) sum += std::exp(static_cast<double>(count));
  for (int c = 0; c < 4; ++c)
    EXPECT_NEAR(gradient[c], 0.5 * (std::exp(static_cast<double>(counts[c])) / sum - (c == 2)), 1e-12);
  spec.kind = LossKind::squared_error;
  spec.target_rate = 0.4;
  spec.wrong_target_rate = 0.05;
  const SampleResult result = count_loss(spec, counts.data(), gradient.data(), 10, 4, 2, 0.5);
  EXPECT_NEAR(result.loss, ((0.25 * 0.25) + (0.05 * 0.05) + (0.3 * 0.3) + (0.05 * 0.05)) / 4, 1e-12);
  EXPECT_NEAR(gradient[2], 0.5 * 2 * 0.3 / 4 / 10, 1e-12);
}

TEST(SpikeCounts, MostSpikesWinTiesAndSilenceAreUndecided) {
  LossSpec spec;
  spec.kind = LossKind::spike_count;
  const auto decide = [&](std::vector<std::uint32_t> counts) {
    return count_loss<float>(spec, counts.data(), nullptr, 10, static_cast<int>(counts.size()), 0, 1.0);
  };
  EXPECT_EQ(decide({1, 5, 2}).decision, 1);
  EXPECT_FALSE(decide({1, 5, 2}).undecided);
  EXPECT_EQ(decide({1, 5, 5}).decision, 1);
  EXPECT_TRUE(decide({1, 5, 5}).undecided);
  EXPECT_TRUE(decide({0, 0, 0}).undecided);
  EXPECT_TRUE(decide({0}).undecided);
}

TEST(Losses, LossAndLastLayerMustFit) {
  NetworkSpec network;
  network.layers.resize(1);
  network.layers[0].name = "out";
  LossSpec spec;
  EXPECT_THROW(make_readout_loss(spec, network), UserError);
  spec.kind = LossKind::spike_count;
  EXPECT_NO_THROW(make_readout_loss(spec, network));
  spec.decision = DecisionKind::last;
  EXPECT_THROW(make_readout_loss(spec, network), UserError);
  network.layers[0].neuron = NeuronKind::leaky_integrator;
  EXPECT_THROW(make_readout_loss(spec, network), UserError);
}

}  // namespace
}  // namespace spikeloom
