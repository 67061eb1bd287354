#include "train/initialise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/random.hpp"

namespace spikeloom {
namespace {

class Warnings final : public ProgressListener {
 public:
  void progress(std::string_view, std::uint64_t, std::uint64_t, std::string_view) override {}
  void warning(std::string_view text) override { texts.emplace_back(text); }
  void note(std::string_view) override {}
  std::vector<std::string> texts;
};

SpikeDataset noise(int samples, int channels, double activity) {
  SpikeDataset data({.step_us = 1000, .steps = 50, .channel_bin = 1, .counts = false}, channels);
  RandomStream random(1, "noise");
  for (int sample = 0; sample < samples; ++sample) {
    std::vector<Event> events;
    for (int step = 0; step < 50; ++step) {
      for (int channel = 0; channel < channels; ++channel) {
        // Some channels are much busier than others, as in real recordings.
        if (random.uniform() < activity * 2.0 * channel / channels)
          events.push_back({step * 1000, static_cast<std::uint32_t>(channel)});
      }
    }
    data.add(events, 0, -1, "noise");
  }
  return data;
}

NetworkSpec network_of(InitKind init, int channels) {
  NetworkSpec network;
  network.channels = channels;
  network.steps = 50;
  for (const int size : {100, 70}) {
    LayerSpec& layer = network.layers.emplace_back();
    layer.name = "layer" + std::to_string(network.layers.size());
    layer.size = size;
    layer.membrane.decay_given = true;
    layer.init = init;
  }
  LayerSpec& readout = network.layers.emplace_back();
  readout.name = "readout";
  readout.neuron = NeuronKind::leaky_integrator;
  readout.size = 5;
  readout.init = init;
  return network;
}

struct Case {
  Case(const NetworkSpec& spec, const SpikeDataset& data_, std::vector<bool> given = {})
      : network(spec),
        data(data_),
        team(2),
        engine(network, make_plan(network, EngineMode::sparse, 2), team),
        parameters(initial_parameters(network, 1)),
        samples(data.size()) {
    std::iota(samples.begin(), samples.end(), 0U);
    initialise_from_data(engine, parameters, data, samples, given, warnings);
    gather_batch(data, samples, batch);
  }
  NetworkSpec network;
  const SpikeDataset& data;
  WorkerTeam team;
  Engine engine;
  Parameters parameters;
  std::vector<std::uint32_t> samples;
  Warnings warnings;
  SpikeBatch batch;
};

TEST(Initialise, RateMeetsEveryTargetInEveryLayer) {
  const SpikeDataset data = noise(20, 60, 0.05);
  for (const double rate : {0.002, 0.02, 0.1}) {
    for (const double gain : {1e-6, 1.0, 1e6}) {
      NetworkSpec network = network_of(InitKind::rate, 60);
      for (LayerSpec& layer : network.layers) layer.init_rate = rate, layer.init_gain = gain;
      Case made(network, data);
      for (const int layer : {0, 1}) {
        EXPECT_NEAR(made.engine.record(made.batch, layer, true, false).spikes.activity(), rate, 0.1 * rate)
            << layer << " " << gain;
      }
      EXPECT_TRUE(made.warnings.texts.empty());
    }
  }
}

TEST(Initialise, RateLeavesFewNeuronsSilentAndNoneMuchTooBusy) {
  const SpikeDataset data = noise(20, 60, 0.05);
  Case made(network_of(InitKind::rate, 60), data);
  const SpikeBatch spikes = made.engine.record(made.batch, 0, true, false).spikes;
  std::vector<double> rate(100, 0.0);
  for (const std::uint32_t id : spikes.ids) rate[id] += 1.0 / static_cast<double>(spikes.rows());
  int silent = 0;
  for (const double r : rate) {
    silent += r == 0.0;
    EXPECT_LT(r, 0.1);
  }
  EXPECT_LT(silent, 10);
}

TEST(Initialise, LsuvGivesTheInputItsVariance) {
  const SpikeDataset data = noise(20, 60, 0.05);
  Case made(network_of(InitKind::lsuv, 60), data);
  for (const int layer : {0, 1}) {
    const std::vector<float> current = made.engine.record(made.batch, layer, false, true, true).membrane;
    double sum = 0.0;
    double squares = 0.0;
    for (const float x : current) sum += x, squares += static_cast<double>(x) * x;
    const double mean = sum / static_cast<double>(current.size());
    EXPECT_NEAR(squares / static_cast<double>(current.size()) - mean * mean, 0.633, 1e-3);
  }
}

TEST(Initialise, LsuvKeepsRowsOrthogonal) {
  const SpikeDataset data = noise(5, 120, 0.05);
  Case made(network_of(InitKind::lsuv, 120), data);
  const std::vector<float>& weight = made.parameters.layers[0].weight;  // (100, 120)
  const auto dot = [&](int a, int b) {
    double sum = 0.0;
    for (int i = 0; i < 120; ++i) sum += static_cast<double>(weight[a * 120 + i]) * weight[b * 120 + i];
    return sum;
  };
  for (const int other : {1, 50, 99}) {
    EXPECT_NEAR(dot(other, other) / dot(0, 0), 1.0, 1e-5);
    EXPECT_NEAR(dot(0, other) / dot(0, 0), 0.0, 1e-5);
  }
}

TEST(Initialise, RecurrentWeightsAreOrthogonalTimesTheirGain) {
  NetworkSpec network = network_of(InitKind::normal, 60);
  network.layers[0].recurrent = true;
  network.layers[0].recurrent_gain = 0.5;
  const Parameters parameters = initial_parameters(network, 1);
  const std::vector<float>& weight = parameters.layers[0].recurrent_weight;
  ASSERT_EQ(weight.size(), 100u * 100u);
  for (const int a : {0, 3, 99}) {
    for (const int b : {0, 50, 99}) {
      double sum = 0.0;
      for (int i = 0; i < 100; ++i) sum += static_cast<double>(weight[a * 100 + i]) * weight[b * 100 + i];
      EXPECT_NEAR(sum, a == b ? 0.25 : 0.0, 1e-6);
    }
  }
  network.layers[0].recurrent = false;
  EXPECT_TRUE(initial_parameters(network, 1).layers[0].recurrent_weight.empty());
  EXPECT_EQ(initial_parameters(network, 1).layers[0].weight, parameters.layers[0].weight)
      << "recurrence changes no other number";
}

TEST(Initialise, RecurrentLayersReachTheirRate) {
  const SpikeDataset data = noise(20, 60, 0.05);
  NetworkSpec network = network_of(InitKind::rate, 60);
  network.layers[0].recurrent = true;
  Case made(network, data);
  EXPECT_NEAR(made.engine.record(made.batch, 0, true, false).spikes.activity(), network.layers[0].init_rate, 0.004);
}

TEST(Initialise, SilentInputIsWarnedOfAndLeavesTheWeights) {
  const SpikeDataset data = noise(5, 60, 0.0);
  for (const InitKind init : {InitKind::rate, InitKind::lsuv}) {
    const NetworkSpec network = network_of(init, 60);
    Case made(network, data);
    EXPECT_EQ(made.warnings.texts.size(), 2U);
    EXPECT_EQ(made.parameters.layers[0].weight, initial_parameters(network, 1).layers[0].weight);
  }
}

TEST(Initialise, GivenLayersAndOtherKindsKeepTheirWeights) {
  const SpikeDataset data = noise(20, 60, 0.05);
  const NetworkSpec network = network_of(InitKind::rate, 60);
  const Parameters drawn = initial_parameters(network, 1);
  Case given(network, data, {true, false, false});
  EXPECT_EQ(given.parameters.layers[0].weight, drawn.layers[0].weight);
  EXPECT_NE(given.parameters.layers[1].weight, drawn.layers[1].weight);
  EXPECT_EQ(given.parameters.layers[2].weight, drawn.layers[2].weight) << "a readout does not spike";
  Case kaiming(network_of(InitKind::kaiming, 60), data);
  EXPECT_EQ(kaiming.parameters.layers[0].weight, initial_parameters(kaiming.network, 1).layers[0].weight);
}

TEST(Initialise, AnUnreachableRateIsWarnedOf) {
  const SpikeDataset data = noise(20, 60, 0.05);
  NetworkSpec network = network_of(InitKind::rate, 60);
  network.layers[0].init_rate = 0.99;
  Case made(network, data);
  ASSERT_FALSE(made.warnings.texts.empty());
  EXPECT_NE(made.warnings.texts[0].find("layer1"), std::string::npos);
}

}  // namespace
}  // namespace spikeloom
