#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "configuration_file.hpp"

namespace spikeloom {
namespace {

using testing::kMinimal;
using testing::load_text;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(ConfigurationDefaults, AreThoseOfTheDesign) {
  const Configuration c = load_text(kMinimal);
  EXPECT_EQ(c.seed, 1u);
  EXPECT_EQ(c.data.step_ms, 10.0);
  EXPECT_EQ(c.data.steps, 100);
  EXPECT_TRUE(c.data.test.empty());
  EXPECT_EQ(c.data.validation_fraction, 0.0);
  EXPECT_EQ(c.data.folds, 0);
  EXPECT_EQ(c.loss.kind, LossKind::cross_entropy);
  EXPECT_EQ(c.loss.over, LossOver::steps);
  EXPECT_EQ(c.loss.decision, DecisionKind::automatic);
  EXPECT_EQ(c.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(c.optimizer.learning_rate, 1e-3);
  EXPECT_EQ(c.optimizer.momentum, 0.9);
  EXPECT_EQ(c.optimizer.weight_decay, 0.0);
  EXPECT_EQ(c.optimizer.schedule, ScheduleKind::constant);
  EXPECT_EQ(c.optimizer.gradient_clip, 0.0);
  EXPECT_EQ(c.training.epochs, 20);
  EXPECT_EQ(c.training.batch_size, 128);
  EXPECT_TRUE(c.training.anneal_window);
  EXPECT_EQ(c.engine.mode, EngineMode::automatic);
}

TEST(ConfigurationDefaults, OfALayerAreThoseOfTheDesign) {
  const LayerSpec layer = load_text(kMinimal).network.layers.at(0);
  EXPECT_EQ(layer.neuron, NeuronKind::lif);
  EXPECT_EQ(layer.membrane.tau_ms, (Range{200.0, 200.0}));
  EXPECT_EQ(layer.threshold, 1.0);
  EXPECT_EQ(layer.reset, ResetKind::zero);
  EXPECT_FALSE(layer.reset_gradient);
  EXPECT_EQ(layer.input_gain, 1.0);
  EXPECT_EQ(layer.input_scaling, InputScaling::none);
  EXPECT_TRUE(layer.bias);
  EXPECT_EQ(layer.surrogate, (SurrogateSpec{SurrogateKind::superspike, 10.0, 1.0, 0.9, kInfinity}));
  EXPECT_EQ(layer.init, InitKind::rate);
}

TEST(ConfigurationDefaults, OfAModelAreThoseOfItsAuthors) {
  const auto layer_of = [](const std::string& neuron, const std::vector<std::string>& more = {}) {
    std::vector<std::string> overrides{"layers.hidden.neuron=" + neuron};
    overrides.insert(overrides.end(), more.begin(), more.end());
    return load_text(kMinimal, overrides).network.layers.at(0);
  };
  using enum NeuronParameter;
  for (const std::string neuron : {"adlif", "se_adlif"}) {
    const LayerSpec layer = layer_of(neuron);
    EXPECT_EQ(layer.membrane.decay, (Range{std::exp(-1.0 / 5), std::exp(-1.0 / 25)}));
    EXPECT_EQ(layer.adaptation.decay, (Range{std::exp(-1.0 / 30), std::exp(-1.0 / 120)}));
    EXPECT_EQ(layer.adapt_membrane, (Range{neuron == "adlif" ? -1.0 : 0.0, 1.0}));
    EXPECT_EQ(layer.adapt_spike, (Range{0.0, 2.0}));
    EXPECT_EQ(layer.input_scaling, InputScaling::leak);
    EXPECT_EQ(layer.reset, neuron == "adlif" ? ResetKind::subtract : ResetKind::zero);
    EXPECT_EQ(layer.learn, (std::vector{decay, decay_adapt, adapt_membrane, adapt_spike}));
  }
  EXPECT_EQ(layer_of("if").membrane.decay, Range(1.0));
  EXPECT_EQ(layer_of("alif").reset, ResetKind::subtract);
  EXPECT_EQ(layer_of("alif").adapt_spike, Range(1.8));
  // What is given stays.
  const LayerSpec given = layer_of("adlif", {"layers.hidden.tau_mem_ms=50", "layers.hidden.reset=zero",
                                             "layers.hidden.learn=[]", "layers.hidden.adapt_spike=0.3"});
  EXPECT_EQ(given.membrane.decay, Range(std::exp(-10.0 / 50)));
  EXPECT_EQ(given.reset, ResetKind::zero);
  EXPECT_TRUE(given.learn.empty());
  EXPECT_EQ(given.adapt_spike, Range(0.3));
}

TEST(ConfigurationDefaults, ClassesAreTheSizeOfTheLastLayer) {
  EXPECT_EQ(load_text(kMinimal).data.classes, 4);
  EXPECT_EQ(load_text(kMinimal, {"data.classes=3"}).data.classes, 3);
}

TEST(ConfigurationDefaults, DecayFollowsFromTheTimeConstantAndTheStep) {
  const Configuration c = load_text(kMinimal, {"data.step_ms=2.5", "layers.hidden.tau_mem_ms=[70, 350]"});
  EXPECT_DOUBLE_EQ(c.network.layers[0].membrane.decay.low, std::exp(-2.5 / 70));
  EXPECT_DOUBLE_EQ(c.network.layers[0].membrane.decay.high, std::exp(-2.5 / 350));
  EXPECT_FALSE(c.network.layers[0].membrane.decay_given);
}

TEST(ConfigurationDefaults, NetworkKnowsStepAndStepsOfTheData) {
  const Configuration c = load_text(kMinimal, {"data.step_ms=4", "data.steps=250", "data.channels=700"});
  EXPECT_EQ(c.network.step_ms, 4.0);
  EXPECT_EQ(c.network.steps, 250);
  EXPECT_EQ(c.network.channels, 700);
}

TEST(ConfigurationDefaults, NetworkHasTheChannelsThatAreLeftAfterJoining) {
  EXPECT_EQ(load_text(kMinimal, {"data.channels=700", "data.channel_bin=5"}).network.channels, 140);
  EXPECT_EQ(load_text(kMinimal, {"data.channels=701", "data.channel_bin=5"}).network.channels, 141);
  EXPECT_EQ(load_text(kMinimal, {"data.channel_bin=5"}).network.channels, 0);  // known when the data has been read
}

TEST(ConfigurationDefaults, SurrogatesWithASupportOfTheirOwnHaveNoWindowUnlessOneIsGiven) {
  for (const char* kind : {"triangle", "box", "quadratic"}) {
    const std::string choice = std::string("layers.hidden.surrogate=") + kind;
    EXPECT_EQ(load_text(kMinimal, {choice}).network.layers[0].surrogate.window_low, -kInfinity) << kind;
    EXPECT_EQ(load_text(kMinimal, {choice}).network.layers[0].surrogate.window_high, kInfinity) << kind;
    EXPECT_EQ(load_text(kMinimal, {choice, "layers.hidden.window=[0.5, 1.5]"}).network.layers[0].surrogate.window_low,
              0.5)
        << kind;
  }
  EXPECT_EQ(load_text(kMinimal, {"layers.hidden.surrogate=arctan"}).network.layers[0].surrogate.window_low, 0.9);
  EXPECT_EQ(load_text(kMinimal, {"layers.hidden.surrogate=arctan"}).network.layers[0].surrogate.beta, 2.0);
  EXPECT_EQ(load_text(kMinimal, {"layers.hidden.surrogate=arctan", "layers.hidden.surrogate_beta=3"})
                .network.layers[0]
                .surrogate.beta,
            3.0);
}

TEST(ConfigurationDefaults, UnnamedLayersAreNumbered) {
  const Configuration c =
      load_text("[data]\ntrain = \"t.h5\"\n[[layers]]\nsize = 3\n[[layers]]\nsize = 2\nneuron = \"linear\"\n");
  EXPECT_EQ(c.network.layers[0].name, "layer1");
  EXPECT_EQ(c.network.layers[1].name, "layer2");
}

}  // namespace
}  // namespace spikeloom
