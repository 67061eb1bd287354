// Random networks, batches and parameters for property tests of the engine.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <spikeloom/configuration.hpp>
#include "core/random.hpp"
#include "data/spike_batch.hpp"
#include "network/parameters.hpp"

namespace spikeloom::testing {

/// A whole case: what is trained, on what, with which loss.
struct Case {
  NetworkSpec network;
  LossSpec loss;
  SpikeBatch batch;
  Parameters parameters;
  double window_low = std::nan("");
};

/// How lively the network is.
enum class Liveliness { ordinary, silent, all_fire };

inline LayerSpec lif_layer(const std::string& name, int size) {
  LayerSpec layer;
  layer.name = name;
  layer.size = size;
  layer.membrane.decay_given = true;
  return layer;
}

inline LayerSpec readout_layer(const std::string& name, int size, NeuronKind neuron) {
  LayerSpec layer = lif_layer(name, size);
  layer.neuron = neuron;
  return layer;
}

/// Spikes with another density in each sample; every seventh sample is empty.
inline SpikeBatch random_batch(int samples, int steps, int neurons, int classes, double activity, RandomStream random) {
  SpikeBatch batch;
  batch.samples = samples;
  batch.steps = steps;
  batch.neurons = neurons;
  for (int sample = 0; sample < samples; ++sample) {
    const double density = sample % 7 == 6 ? 0.0 : activity * random.uniform(0.2, 1.8);
    for (int step = 0; step < steps; ++step) {
      for (int neuron = 0; neuron < neurons; ++neuron) {
        if (random.uniform() < density) batch.ids.push_back(static_cast<std::uint32_t>(neuron));
      }
      batch.offsets.push_back(static_cast<std::uint32_t>(batch.ids.size()));
    }
    batch.labels.push_back(static_cast<int>(random.below(classes)));
  }
  return batch;
}

/// Delays of a layer within its range.
inline std::vector<float> random_delays(const LayerSpec& layer, RandomStream& random) {
  std::vector<float> delays;
  if (!layer.delayed()) return delays;
  const auto choices = static_cast<std::uint64_t>(layer.delay_steps.high - layer.delay_steps.low) + 1;
  for (int j = 0; j < layer.size; ++j)
    delays.push_back(static_cast<float>(layer.delay_steps.low + static_cast<double>(random.below(choices))));
  return delays;
}

/// Weights of a size that makes about a tenth of the neurons fire now and then at the given input activity, decays
/// drawn in the layer's range.
inline Parameters random_parameters(const NetworkSpec& network, double input_activity, Liveliness liveliness,
                                    RandomStream random) {
  Parameters parameters;
  double activity = input_activity;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const LayerSpec& layer = network.layers[l];
    LayerParameters& out = parameters.layers.emplace_back();
    const int inputs = network.inputs_of(l);
    const bool leaks = layer.neuron != NeuronKind::integrate_and_fire;
    const double decay_mean = leaks ? layer.membrane.decay.mean() : 1.0;
    const double threshold = layer.threshold.mean();
    const double gain =
        layer.input_scaling == InputScaling::leak ? (1.0 - decay_mean) * layer.input_gain : layer.input_gain;
    const double memory = std::min(20.0, 1.0 / (1.0001 - decay_mean));  // steps that add up in the membrane
    const double spread = threshold / (gain * std::sqrt(std::max(1.0, inputs * activity * memory)));
    const double scale = liveliness == Liveliness::silent ? 0.01 : 0.8;
    for (int i = 0; i < layer.size * inputs; ++i)
      out.weight.push_back(static_cast<float>(scale * spread * random.normal()));
    if (layer.recurrent) {
      // Over many steps, feedback that outgrows the leak would make gradients explode beyond what float32 holds.
      const double feedback = network.steps > 20 ? 0.3 / memory : 0.8 / std::sqrt(0.1 * memory);
      const double own_spread = feedback * threshold / (gain * std::sqrt(layer.size));
      for (int i = 0; i < layer.size * layer.size; ++i)
        out.recurrent_weight.push_back(static_cast<float>(scale * own_spread * random.normal()));
    }
    for (int j = 0; j < layer.size; ++j) {
      if (layer.bias)
        out.bias.push_back(static_cast<float>(liveliness == Liveliness::all_fire ? 3.0 * threshold / gain
                                                                                 : 0.05 * spread * random.normal()));
      for (const NeuronParameter parameter : kNeuronParameters) {
        const Range& range = layer.initial(parameter);
        if (is_stored(layer, parameter) || parameter == NeuronParameter::decay)
          out.of(parameter).push_back(static_cast<float>(random.uniform(range.low, range.high)));
      }
    }
    out.delay = random_delays(layer, random);
    activity = 0.1;
  }
  return parameters;
}

template <class T>
T pick(RandomStream& random, std::initializer_list<T> values) {
  return values.begin()[random.below(values.size())];
}

/// Constants of a spiking layer drawn from everything that can be configured.
inline void randomise_layer(LayerSpec& layer, RandomStream& random) {
  const double decay = pick(random, {0.0, 0.5, 0.9, 0.95, 0.99});
  layer.membrane.decay = random.below(2) == 0 ? Range{decay, decay} : Range{0.5 * decay, decay};
  layer.threshold = pick(random, {0.5, 1.0, 2.0});
  layer.reset = pick(random, {ResetKind::zero, ResetKind::subtract, ResetKind::subtract_after_decay, ResetKind::none});
  layer.reset_gradient = random.below(2) == 0;
  layer.input_scaling = random.below(3) == 0 ? InputScaling::leak : InputScaling::none;
  layer.input_gain = layer.input_scaling == InputScaling::leak ? 20.0 : pick(random, {1.0, 0.7});
  layer.bias = random.below(3) != 0;
  layer.surrogate.kind = pick(random, {SurrogateKind::superspike, SurrogateKind::triangle, SurrogateKind::box,
                                       SurrogateKind::quadratic, SurrogateKind::arctan});
  layer.surrogate.beta = pick(random, {1.0, 2.0, 10.0});
  layer.surrogate.window_low = pick(random, {0.9, 0.5, -1.0, -100.0});
  layer.surrogate.window_high = pick(random, {std::numeric_limits<double>::infinity(), 1.5, 1.05});
  if (random.below(3) == 0) {
    layer.rate_upper = 0.02;
    layer.rate_upper_weight = 5.0;
    layer.rate_lower = 0.01;
    layer.rate_lower_weight = 7.0;
  }
}

/// Makes a layer one of the models beyond LIF, and lets it learn some of its constants.
inline void randomise_neuron(LayerSpec& layer, RandomStream& random) {
  layer.neuron = pick(random, {NeuronKind::lif, NeuronKind::integrate_and_fire, NeuronKind::cuba_lif, NeuronKind::alif,
                               NeuronKind::adlif, NeuronKind::se_adlif});
  const auto one_or_range = [&](double low, double high) {
    return random.below(2) == 0 ? Range(high) : Range(low, high);
  };
  if (layer.neuron == NeuronKind::alif) layer.reset_gradient = false;
  if (layer.neuron == NeuronKind::integrate_and_fire) layer.input_scaling = InputScaling::none, layer.input_gain = 0.7;
  if (layer.neuron == NeuronKind::se_adlif && layer.reset == ResetKind::subtract_after_decay)
    layer.reset = ResetKind::zero;
  layer.threshold = one_or_range(0.8, pick(random, {1.0, 1.5}));
  layer.synapse = {true, one_or_range(0.3, pick(random, {0.5, 0.9})), {}};
  layer.adaptation = {true, one_or_range(0.5, pick(random, {0.8, 0.95})), {}};
  // Outside -(1 - alpha) (1 - beta) < k a < (1 + alpha) (1 + beta), u and w grow or swing without bound, and gradients
  // with them; k (1 - alpha) at most.
  const Range &alpha = layer.membrane.decay, &beta = layer.adaptation.decay;
  const bool leak = layer.input_scaling == InputScaling::leak;
  const double least = -0.5 * (1.0 - beta.high) * (leak ? 1.0 : 1.0 - alpha.high) / layer.input_gain;
  const double most = 0.5 * (1.0 + alpha.low) * (1.0 + beta.low) / ((leak ? 1.0 - alpha.low : 1.0) * layer.input_gain);
  layer.adapt_gain = 2.0;
  layer.adapt_membrane = layer.neuron == NeuronKind::adlif
                             ? one_or_range(least, std::min(0.5, most))
                             : one_or_range(0.0, std::min(0.5, most / ((1.0 - beta.low) * layer.adapt_gain)));
  layer.adapt_spike = one_or_range(0.0, layer.neuron == NeuronKind::alif ? 1.8 : 0.5);
  layer.adapt_scaled = random.below(2) == 0;
  layer.learn.clear();
  for (const NeuronParameter parameter : kNeuronParameters) {
    if (has_constant(layer.neuron, parameter) && random.below(2) == 0) layer.learn.push_back(parameter);
  }
}

}  // namespace spikeloom::testing
