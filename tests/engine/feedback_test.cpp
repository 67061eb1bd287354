// Layers that take spikes from later ones: their gradients, and what their networks look like to the engine.
#include <gtest/gtest.h>

#include <spikeloom/error.hpp>
#include "gradient_check.hpp"

namespace spikeloom::testing {
namespace {

/// Random sources for every layer that is fed by spikes: earlier and later ones, and the data.
void draw_inputs(NetworkSpec& network, RandomStream& random) {
  const bool chain = random.below(2) == 0;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    std::vector<std::string>& names = network.layers[l].inputs;
    names.clear();
    for (std::size_t source = 0; source < network.layers.size(); ++source) {
      if (source == l || !network.layers[source].spiking()) continue;
      const bool feedback = source > l;
      const bool needed = chain && source + 1 == l;
      if (needed || random.below(feedback ? 3 : 2) == 0) names.push_back(network.layers[source].name);
    }
    if (random.below(l == 0 ? 5 : 2) != 0 && l + 1 < network.layers.size()) names.push_back(kDataInput);
    const std::vector<std::string> in_order = names;
    const std::vector<std::uint32_t> order = random.permutation(names.size());
    for (std::size_t i = 0; i < order.size(); ++i) names[i] = in_order[order[i]];
  }
}

std::size_t layers_in_loops(const NetworkSpec& network) {
  std::size_t count = 0;
  for (const std::vector<int>& part : network.connected_parts()) count += part.size() > 1 ? part.size() : 0;
  return count;
}

bool valid(const NetworkSpec& network) {
  try {
    validate(network);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

/// Makes what comes back weak: over many steps, feedback that outgrows the leak would make gradients explode beyond
/// what float32 holds.
void weaken_feedback(const NetworkSpec& network, Parameters& parameters) {
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const auto inputs = static_cast<std::size_t>(network.inputs_of(l));
    std::size_t first = 0;
    for (const int source : network.sources_of(l)) {
      const auto size = static_cast<std::size_t>(network.size_of(source));
      const float factor = NetworkSpec::lag_of(source, l) == 0 ? 1.0f : network.steps > 20 ? 0.05f : 0.3f;
      for (std::size_t j = 0; j < static_cast<std::size_t>(network.layers[l].size); ++j) {
        for (std::size_t i = first; i < first + size; ++i) parameters.layers[l].weight[j * inputs + i] *= factor;
      }
      first += size;
    }
  }
}

/// Two to five layers that spike, some of which feedback joins; any neurons, recurrent layers, learned constants, and
/// changed lists where they may be.
Case feedback_case(std::uint64_t number) {
  RandomStream random(number, "feedback case");
  Case test;
  const int steps = pick(random, {1, 2, 5, 17, 40, 80});
  const int samples = steps >= 40 ? pick(random, {1, 2, 5}) : pick(random, {1, 3, 8, 40});
  test.network.steps = steps;
  test.network.channels = static_cast<int>(1 + random.below(60));
  const int spiking = static_cast<int>(2 + random.below(4));
  const bool ends_in_spikes = random.below(4) == 0;
  const int classes = pick(random, {2, 10, 20, 35});
  for (int l = 0; l < spiking; ++l) {
    const bool last = ends_in_spikes && l + 1 == spiking;
    LayerSpec& layer = test.network.layers.emplace_back(
        lif_layer("hidden" + std::to_string(l + 1), last ? classes : static_cast<int>(1 + random.below(100))));
    randomise_layer(layer, random);
    layer.recurrent = random.below(3) == 0;
    if (number % 2 == 0) randomise_neuron(layer, random);
  }
  if (ends_in_spikes) {
    test.loss.kind = pick(random, {LossKind::spike_count, LossKind::squared_error});
  } else {
    test.loss.over = pick(random, {LossOver::steps, LossOver::softmax_sum, LossOver::mean, LossOver::last});
    test.network.layers.push_back(
        readout_layer("output", classes, pick(random, {NeuronKind::leaky_integrator, NeuronKind::linear})));
  }
  do {
    const double dropout = pick(random, {0.0, 0.3, 0.8});
    for (std::size_t l = 0; l + 1 < test.network.layers.size(); ++l) {
      LayerSpec& layer = test.network.layers[l];
      layer.dropout = dropout;
      layer.delay_steps = pick(random, {Range{0, 0}, Range{0, 0}, Range{0, 0}, Range{0, 3}});
      layer.spike_budget = layer.recurrent ? 0 : pick(random, {0, 0, 0, 3});
    }
    draw_inputs(test.network, random);
  } while (layers_in_loops(test.network) == 0 || !valid(test.network));
  test.batch = random_batch(samples, steps, test.network.channels, classes, 0.1, RandomStream(number, "batch"));
  test.parameters = random_parameters(test.network, 0.1, Liveliness::ordinary, RandomStream(number, "parameters"));
  weaken_feedback(test.network, test.parameters);
  return test;
}

/// Who takes spikes from whom, for a case that fails.
std::string text_of(const NetworkSpec& network) {
  std::string text;
  for (const LayerSpec& layer : network.layers) {
    text += " " + layer.name + (layer.recurrent ? " (recurrent) <-" : " <-");
    for (const std::string& name : layer.inputs) text += " " + name;
    text += ";";
  }
  return text;
}

/// What the drawn networks have to do with each other.
struct Seen {
  int joined = 0, recurrent = 0, dropped = 0, outside = 0, learned = 0, three = 0;
  void add(const NetworkSpec& network) {
    for (const std::vector<int>& part : network.connected_parts()) {
      const bool loop = part.size() > 1;
      joined += loop;
      three += part.size() > 2;
      for (const int l : part) {
        recurrent += loop && network.layers[l].recurrent;
        dropped += loop && network.layers[l].dropout > 0.0;
        learned += loop && !network.layers[l].learn.empty();
        outside += !loop && (network.layers[l].delayed() || network.layers[l].spike_budget > 0);
      }
    }
  }
};

class Feedback : public ::testing::TestWithParam<EngineMode> {};

TEST_P(Feedback, GradientEqualsTheDenseFloat64Reference) {
  Totals totals;
  Seen seen;
  for (std::uint64_t number = 220; number < 420; ++number) {
    const Case test = feedback_case(number);
    SCOPED_TRACE("case " + std::to_string(number) + ":" + text_of(test.network));
    seen.add(test.network);
    check_gradient(test, GetParam(), 1 + static_cast<int>(number % 3), totals);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
  EXPECT_GT(totals.decisions, 500'000u);
  EXPECT_GE(seen.joined, 200);
  for (const int count : {seen.three, seen.recurrent, seen.dropped, seen.learned, seen.outside}) EXPECT_GT(count, 10);
}

INSTANTIATE_TEST_SUITE_P(Modes, Feedback,
                         ::testing::Values(EngineMode::sparse, EngineMode::dense, EngineMode::automatic),
                         [](const auto& mode) {
                           return mode.param == EngineMode::sparse  ? "sparse"
                                  : mode.param == EngineMode::dense ? "dense"
                                                                    : "auto";
                         });

TEST(FeedbackInBf16, LayersOfALoopKeepFp32) {
  Totals totals;
  int half = 0;
  for (std::uint64_t number = 1; number < 100; number += 2) {  // nothing learned but weights and biases
    const Case test = feedback_case(number);
    SCOPED_TRACE("case " + std::to_string(number) + ":" + text_of(test.network));
    const Plan plan = make_plan(test.network, EngineMode::sparse, 2, EnginePrecision::bf16);
    for (const std::vector<int>& part : test.network.connected_parts()) {
      for (const int l : part) {
        half += plan.layers[l].half_rows;
        EXPECT_FALSE(part.size() > 1 && plan.layers[l].half_rows);
      }
    }
    check_gradient(test, EngineMode::sparse, 2, totals, EnginePrecision::bf16);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(half, 5);
}

TEST(FeedbackGradient, DoesNotRememberTheLastBatch) {
  Case test;
  test.network.channels = 40;
  for (const char* name : {"hidden1", "hidden2"}) test.network.layers.push_back(lif_layer(name, 70));
  test.network.layers.push_back(readout_layer("output", 5, NeuronKind::leaky_integrator));
  test.network.layers[0].inputs = {"data", "hidden2"};
  for (int l : {0, 1}) test.network.layers[l].surrogate.window_low = -100.0;
  test.network.layers[1].learn = {NeuronParameter::threshold};  // hidden2 is heard in the loop alone
  test.network.layers[2].inputs = {"hidden1"};
  test.parameters = random_parameters(test.network, 0.1, Liveliness::ordinary, RandomStream(1, "parameters"));
  const auto loss = make_readout_loss(test.loss, test.network);
  WorkerTeam team(2, false);
  const auto gradient_after = [&](bool another) {
    Engine engine(test.network, make_plan(test.network, EngineMode::sparse, 2), team);
    engine.import_parameters(test.parameters);
    Parameters gradient;
    if (another) engine.gradient(random_batch(9, 20, 40, 5, 0.3, RandomStream(2, "batch")), *loss, gradient);
    engine.gradient(random_batch(6, 20, 40, 5, 0.2, RandomStream(3, "batch")), *loss, gradient);
    return gradient.layers[1].weight;
  };
  const std::vector<float> fresh = gradient_after(false);
  EXPECT_GT(*std::max_element(fresh.begin(), fresh.end()), 0.0f);
  EXPECT_EQ(fresh, gradient_after(true));
}

TEST(FeedbackSpikes, ArriveOneStepLater) {
  // hidden1 fires once, from the data; each layer passes it on with a weight above its threshold.
  NetworkSpec network;
  network.channels = 1;
  network.steps = 6;
  for (const char* name : {"hidden1", "hidden2"}) {
    LayerSpec& layer = network.layers.emplace_back(lif_layer(name, 1));
    layer.membrane.decay = 0.0;
    layer.bias = false;
  }
  network.layers.push_back(readout_layer("output", 2, NeuronKind::leaky_integrator));
  network.layers.back().bias = false;
  network.layers[0].inputs = {"data", "hidden2"};
  Case test{network, {}, {}, {}};
  test.batch.samples = 1, test.batch.steps = 6, test.batch.neurons = 1;
  test.batch.offsets = {0, 0, 1, 1, 1, 1, 1};
  test.batch.ids = {0};
  test.batch.labels = {0};
  test.parameters.layers.resize(3);
  test.parameters.layers[0].weight = {2.0f, 2.0f};
  test.parameters.layers[1].weight = {2.0f};
  test.parameters.layers[2].weight = {0.5f, 0.1f};
  for (LayerParameters& layer : test.parameters.layers) layer.decay.assign(1, 0.0f);
  test.parameters.layers[2].decay.assign(2, 0.0f);
  WorkerTeam team(1, false);
  Engine engine(network, make_plan(network, EngineMode::sparse, 1), team);
  engine.import_parameters(test.parameters);
  const std::vector<std::uint32_t> from_step_1_on = {0, 0, 1, 2, 3, 4, 5};
  for (const int layer : {0, 1})
    EXPECT_EQ(engine.record(test.batch, layer, true, false).spikes.offsets, from_step_1_on);
  test.parameters.layers[0].weight[1] = 0.9f;
  engine.import_parameters(test.parameters);
  const std::vector<std::uint32_t> at_step_1 = {0, 0, 1, 1, 1, 1, 1};
  EXPECT_EQ(engine.record(test.batch, 1, true, false).spikes.offsets, at_step_1);
  // What the first layer receives: the data in column 0 at step 1, feedback in column 1 at step 2.
  const std::vector<float> input = engine.record(test.batch, 0, false, true, true).membrane;
  EXPECT_EQ(input, (std::vector<float>{0.0f, 2.0f, 0.9f, 0.0f, 0.0f, 0.0f}));
}

}  // namespace
}  // namespace spikeloom::testing
