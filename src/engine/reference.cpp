#include "engine/reference.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/random.hpp"
#include "network/neuron_constants.hpp"
#include "network/scalar_models.hpp"

namespace spikeloom {
namespace {

template <class Number>
Number surrogate_derivative(const SurrogateSpec& surrogate, Number x) {
  const SurrogateNumbers numbers = surrogate_numbers(surrogate);
  const scalar::SurrogateConstants<Number> c{static_cast<Number>(numbers.slope), static_cast<Number>(numbers.amplitude),
                                             Number{1}};
  switch (surrogate.kind) {
    case SurrogateKind::superspike:
      return scalar::SuperSpike::derivative(c, x);
    case SurrogateKind::triangle:
      return scalar::Triangle::derivative(c, x);
    case SurrogateKind::box:
      return scalar::Box::derivative(c, x);
    case SurrogateKind::quadratic:
      return scalar::Quadratic::derivative(c, x);
    case SurrogateKind::arctan:
      return scalar::Arctan::derivative(c, x);
  }
  return Number{0};
}

template <class Number>
struct LayerGradient {
  std::vector<Number>& weight;
  std::vector<Number>& recurrent_weight;
  std::vector<Number>& bias;
  std::map<NeuronParameter, std::vector<Number>>& neuron;
};

constexpr int kMostStates = 2;

/// One layer over the whole batch; all arrays are (samples * steps, size).
template <class Number>
struct DenseLayer {
  DenseLayer(const LayerSpec& a_spec, int a_inputs, const LayerParameters& a_parameters, double window_low,
             int a_chunk_steps)
      : spec(a_spec),
        inputs(a_inputs),
        size(a_spec.size),
        chunk_steps(a_chunk_steps),
        parameters(a_parameters),
        constants(neuron_constants<Number>(a_spec, a_parameters, window_low)) {}

  void forward(const std::vector<Number>& input, std::size_t samples, int steps, const ForcedDecisions* forced,
               ReferenceResult<Number>& result);
  /// From dLoss/ds (spiking) or dLoss/du to the gradients; returns dLoss/dinput.
  std::vector<Number> backward(const std::vector<Number>& input, const std::vector<Number>& from_above,
                               std::size_t samples, int steps, LayerGradient<Number>& gradient) const;
  const std::vector<Number>& output() const { return spec.spiking() ? spike : membrane; }

  /// Fills `passed`: dropout leaves out what it draws; then a list holds spike_budget ids, spikes first, then neurons
  /// that are only active, in ascending id.
  void choose_outgoing(std::size_t rows, int steps, const DropoutDraw& dropout);
  /// What the next layer receives, and dLoss/doutput from dLoss/d of that.
  std::vector<Number> sent(int steps) const;
  void take_back(int steps, std::vector<Number>& gradient) const;
  /// Calls visit(at, arrives) for every place of (row, neuron) whose spike arrives within the sample.
  template <class Visit>
  void for_each_arrival(int steps, Visit visit) const;

  using States = std::array<Number, kMostStates>;  // of one neuron, for any model
  /// The input current of neuron j.
  Number current_of(const std::vector<Number>& input, std::size_t row, bool first_step, int j) const;
  /// What neuron j does at `at`, its place at a step: from what the step before handed on to what it hands on.
  void spiking_step(std::size_t at, int j, const ForcedDecisions* forced, ReferenceResult<Number>& result,
                    States& handed_on);
  /// dLoss/dI of neuron j, from dLoss/ds and dLoss/d(handed on), which becomes that of the step before; adds to the
  /// gradients of its constants, (kNeuronConstants).
  Number spiking_adjoint(std::size_t at, int j, Number gradient, States& later, double* constant_gradients) const;
  /// The constants' part in what the neuron at `at` hands on, where gradients go no further.
  void add_gradients_of_handing_on(std::size_t at, const States& later, double* constant_gradients) const;
  scalar::LeakyIntegrator::Constants<Number> integrator(int j) const {
    return {constants[NeuronConstant::decay][j], constants[NeuronConstant::gain][j]};
  }
  static Number weight(const std::vector<float>& matrix, int to, int from, int columns) {
    return static_cast<Number>(matrix[static_cast<std::size_t>(to) * columns + from]);
  }

  const LayerSpec& spec;
  int inputs;
  int size;
  int chunk_steps;  // gradients end at its multiples
  const LayerParameters& parameters;
  NeuronConstants<Number> constants;
  std::vector<Number> current;
  std::vector<Number> membrane;  // of spiking neurons the potential that is compared with the threshold
  std::vector<States> states;
  std::vector<Number> spike;
  std::vector<Number> derivative;  // h, 0 outside the active set
  std::vector<char> forced_spikes, forced_active;
  std::vector<char> in_window;  // the active set
  std::vector<Number> passed;   // what the neuron's spike counts in the next layer, if it spikes; 0: it is dropped
};

template <class Number>
void count_difference(bool own, bool used, Number membrane, Number edge, double threshold,
                      ReferenceResult<Number>& result) {
  if (own == used) return;
  ++result.differing_decisions;
  result.farthest_difference =
      std::max(result.farthest_difference, std::fabs(static_cast<double>(membrane - edge)) / threshold);
}

/// Ones at the listed neurons.
std::vector<char> as_mask(const SpikeLists& lists, std::size_t rows, int size) {
  std::vector<char> mask(rows * size, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::uint32_t e = lists.offsets[row]; e < lists.offsets[row + 1]; ++e) mask[row * size + lists.ids[e]] = 1;
  }
  return mask;
}

template <class Number>
Number DenseLayer<Number>::current_of(const std::vector<Number>& input, std::size_t row, bool first_step, int j) const {
  Number sum = parameters.bias.empty() ? Number{0} : static_cast<Number>(parameters.bias[j]);
  for (int i = 0; i < inputs; ++i) sum += weight(parameters.weight, j, i, inputs) * input[row * inputs + i];
  if (!spec.recurrent || first_step) return sum;
  for (int i = 0; i < size; ++i) sum += weight(parameters.recurrent_weight, j, i, size) * spike[(row - 1) * size + i];
  return sum;
}

template <class Number>
void DenseLayer<Number>::spiking_step(std::size_t at, int j, const ForcedDecisions* forced,
                                      ReferenceResult<Number>& result, States& handed_on) {
  const Number threshold = constants[NeuronConstant::threshold][j];
  const Number low = constants[NeuronConstant::window_low][j], high = constants[NeuronConstant::window_high][j];
  scalar::with_model(spec.neuron, [&]<class Model>(Model) {
    const auto c = scalar::constants_of<Model, Number>(constants, j);
    Number state[Model::kStates];
    std::copy_n(handed_on.begin(), Model::kStates, state);
    const Number v = membrane[at] = Model::integrate(c, current[at], state);
    std::copy_n(state, Model::kStates, states[at].begin());
    bool fires = v > threshold;
    bool active = v > low && v <= high;
    if (forced) {
      count_difference(fires, forced_spikes[at] != 0, v, threshold, static_cast<double>(threshold), result);
      const Number edge = std::fabs(v - low) < std::fabs(v - high) ? low : high;
      count_difference(active, forced_active[at] != 0, v, edge, static_cast<double>(threshold), result);
      fires = forced_spikes[at] != 0;
      active = forced_active[at] != 0;
    }
    spike[at] = fires ? 1 : 0;
    in_window[at] = active;
    derivative[at] = active ? surrogate_derivative<Number>(spec.surrogate, v - threshold) : Number{0};
    Model::carry(c, fires, state);
    std::copy_n(state, Model::kStates, handed_on.begin());
  });
}

template <class Number>
void DenseLayer<Number>::forward(const std::vector<Number>& input, std::size_t samples, int steps,
                                 const ForcedDecisions* forced, ReferenceResult<Number>& result) {
  const std::size_t rows = samples * steps;
  for (std::vector<Number>* array : {&current, &membrane, &spike, &derivative}) array->assign(rows * size, 0);
  in_window.assign(rows * size, 0);
  states.assign(rows * size, {});
  if (forced) forced_spikes = as_mask(forced->spikes, rows, size), forced_active = as_mask(forced->active, rows, size);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::vector<States> handed_on(size, States{});
    for (std::size_t row = sample * steps; row < (sample + 1) * steps; ++row) {
      for (int j = 0; j < size; ++j) {
        const std::size_t at = row * size + j;
        current[at] = current_of(input, row, row == sample * steps, j);
        if (spec.spiking()) {
          spiking_step(at, j, forced, result, handed_on[j]);
        } else {
          membrane[at] = scalar::LeakyIntegrator::integrate(integrator(j), handed_on[j][0], current[at]);
          handed_on[j][0] = scalar::LeakyIntegrator::carry(integrator(j), membrane[at]);
        }
      }
    }
  }
}

template <class Number>
void DenseLayer<Number>::choose_outgoing(std::size_t rows, int steps, const DropoutDraw& draw) {
  passed.assign(rows * size, static_cast<Number>(1.0 / (1.0 - spec.dropout)));
  if (spec.dropout > 0.0) {
    const RandomStream random(draw.seed, "dropout/" + spec.name, draw.step);
    for (std::size_t at = 0; at < passed.size(); ++at) {
      if (random.bits_at(draw.first_sample * steps * size + at) / 4294967296.0 < spec.dropout) passed[at] = 0;
    }
  }
  if (spec.spike_budget == 0) return;
  for (std::size_t row = 0; row < rows; ++row) {
    int listed = 0;
    const auto list_where = [&](auto belongs) {
      for (std::size_t at = row * size; at < (row + 1) * size; ++at) {
        if (passed[at] != 0 && belongs(at) && listed++ >= spec.spike_budget) passed[at] = 0;
      }
    };
    list_where([&](std::size_t at) { return spike[at] != 0; });
    list_where([&](std::size_t at) { return spike[at] == 0 && in_window[at]; });
  }
}

template <class Number>
template <class Visit>
void DenseLayer<Number>::for_each_arrival(int steps, Visit visit) const {
  const std::size_t rows = passed.size() / size;
  for (std::size_t row = 0; row < rows; ++row) {
    for (int j = 0; j < size; ++j) {
      const int delay = parameters.delay.empty() ? 0 : static_cast<int>(parameters.delay[j]);
      const std::size_t at = row * size + j;
      if (static_cast<int>(row % steps) + delay < steps) visit(at, at + static_cast<std::size_t>(delay) * size);
    }
  }
}

template <class Number>
std::vector<Number> DenseLayer<Number>::sent(int steps) const {
  std::vector<Number> result(passed.size(), 0);
  for_each_arrival(steps, [&](std::size_t at, std::size_t arrives) { result[arrives] = passed[at] * output()[at]; });
  return result;
}

template <class Number>
void DenseLayer<Number>::take_back(int steps, std::vector<Number>& gradient) const {
  const std::vector<Number> of_sent = std::exchange(gradient, std::vector<Number>(gradient.size(), 0));
  const auto chunk_of = [&](std::size_t at) { return at / size % steps / chunk_steps; };
  for_each_arrival(steps, [&](std::size_t at, std::size_t arrives) {
    if (chunk_of(at) == chunk_of(arrives)) gradient[at] = passed[at] * of_sent[arrives];
  });
}

template <class Number>
Number DenseLayer<Number>::spiking_adjoint(std::size_t at, int j, Number gradient, States& later,
                                           double* constant_gradients) const {
  return scalar::with_model(spec.neuron, [&]<class Model>(Model) {
    const auto c = scalar::constants_of<Model, Number>(constants, j);
    Number state[Model::kStates], before[Model::kStates], now[Model::kStates], driven[Model::kStates];
    std::copy_n(states[at].begin(), Model::kStates, state);
    std::copy_n(later.begin(), Model::kStates, before);
    std::copy_n(later.begin(), Model::kStates, now);
    // dLoss/ds: from elsewhere, and through the neuron's own states.
    Model::drive(c, membrane[at], spec.reset_gradient, driven);
    for (int k = spec.reset_gradient ? 0 : Model::kFirstDriven; k < Model::kStates; ++k)
      gradient += driven[k] * before[k];
    const bool spiked = spike[at] != 0;
    const Number through_spike = derivative[at] * gradient;
    const Number to_input = Model::adjoint(c, spiked, through_spike, now);
    typename Model::template Constants<Number> sum{};
    Model::add_gradients(spiked, current[at], state, through_spike, before, now, sum);
    Model::visit(sum, [&](NeuronConstant which, Number& value) {
      constant_gradients[static_cast<int>(which)] += static_cast<double>(value);
    });
    std::copy_n(now, Model::kStates, later.begin());
    return to_input;
  });
}

template <class Number>
void DenseLayer<Number>::add_gradients_of_handing_on(std::size_t at, const States& later,
                                                     double* constant_gradients) const {
  if (!spec.spiking()) return;
  scalar::with_model(spec.neuron, [&]<class Model>(Model) {
    Number state[Model::kStates], from_later[Model::kStates], none[Model::kStates] = {};
    std::copy_n(states[at].begin(), Model::kStates, state);
    std::copy_n(later.begin(), Model::kStates, from_later);
    typename Model::template Constants<Number> sum{};
    Model::add_gradients(spike[at] != 0, Number{0}, state, Number{0}, from_later, none, sum);
    Model::visit(sum, [&](NeuronConstant which, Number& value) {
      constant_gradients[static_cast<int>(which)] += static_cast<double>(value);
    });
  });
}

template <class Number>
std::vector<Number> DenseLayer<Number>::backward(const std::vector<Number>& input,
                                                 const std::vector<Number>& from_above, std::size_t samples, int steps,
                                                 LayerGradient<Number>& gradient) const {
  gradient.weight.assign(static_cast<std::size_t>(size) * inputs, 0);
  gradient.recurrent_weight.assign(spec.recurrent ? static_cast<std::size_t>(size) * size : 0, 0);
  gradient.bias.assign(size, 0);
  std::vector<std::array<double, kNeuronConstants>> of_constants(size);
  for (auto& gradients : of_constants) gradients.fill(0.0);
  std::vector<Number> input_gradient(samples * steps * inputs, 0);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::vector<States> later(size, States{});
    std::vector<Number> from_later(size, 0);  // dLoss/ds through the layer's own weights
    for (std::size_t row = (sample + 1) * steps; row-- > sample * steps;) {
      const std::vector<Number> from_itself = std::exchange(from_later, std::vector<Number>(size, 0));
      for (int j = 0; j < size; ++j) {
        const std::size_t at = row * size + j;
        Number scaled;
        if (spec.spiking()) {
          scaled = spiking_adjoint(at, j, from_above[at] + from_itself[j], later[j], of_constants[j].data());
        } else {
          later[j][0] = scalar::LeakyIntegrator::adjoint(integrator(j), from_above[at], later[j][0]);
          scaled = constants[NeuronConstant::gain][j] * later[j][0];
        }
        gradient.bias[j] += scaled;
        for (int i = 0; i < inputs; ++i) {
          gradient.weight[static_cast<std::size_t>(j) * inputs + i] += scaled * input[row * inputs + i];
          input_gradient[row * inputs + i] += scaled * weight(parameters.weight, j, i, inputs);
        }
        if (!spec.recurrent || row == sample * steps) continue;
        for (int i = 0; i < size; ++i) {
          gradient.recurrent_weight[static_cast<std::size_t>(j) * size + i] += scaled * spike[(row - 1) * size + i];
          from_later[i] += scaled * weight(parameters.recurrent_weight, j, i, size);
        }
      }
      if (row % steps % chunk_steps != 0) continue;
      for (int j = 0; j < size && row % steps > 0; ++j)
        add_gradients_of_handing_on((row - 1) * size + j, later[j], of_constants[j].data());
      later.assign(size, States{});
      from_later.assign(size, 0);
    }
  }
  for (const NeuronParameter parameter : spec.learn) {
    for (int j = 0; j < size; ++j)
      gradient.neuron[parameter].push_back(
          static_cast<Number>(parameter_gradient(spec, parameters, j, of_constants[j], parameter)));
  }
  return input_gradient;
}

/// Adds the regulariser of one layer to dLoss/ds and returns it.
template <class Number>
double add_regulariser(const DenseLayer<Number>& layer, std::size_t rows, std::vector<Number>& from_above) {
  double total = 0.0;
  for (int j = 0; j < layer.size; ++j) {
    double rate = 0.0;
    for (std::size_t row = 0; row < rows; ++row) rate += static_cast<double>(layer.spike[row * layer.size + j]);
    rate /= static_cast<double>(rows);
    const double below = std::max(0.0, layer.spec.rate_lower - rate),
                 above = std::max(0.0, rate - layer.spec.rate_upper);
    total += (layer.spec.rate_lower_weight * below * below + layer.spec.rate_upper_weight * above * above) / layer.size;
    const double slope = 2.0 * (layer.spec.rate_upper_weight * above - layer.spec.rate_lower_weight * below) /
                         (layer.size * static_cast<double>(rows));
    for (std::size_t row = 0; row < rows; ++row) from_above[row * layer.size + j] += static_cast<Number>(slope);
  }
  return total;
}

}  // namespace

template <class Number>
ReferenceResult<Number> reference_step(const NetworkSpec& network, const Parameters& parameters,
                                       const SpikeBatch& batch, const ReferenceLoss<Number>& loss,
                                       const std::vector<ForcedDecisions>& forced, double window_low,
                                       const DropoutDraw& dropout, int bptt_steps) {
  ReferenceResult<Number> result;
  const std::size_t rows = batch.rows(), samples = batch.samples;
  std::vector<Number> input(rows * batch.neurons, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::uint32_t e = batch.offsets[row]; e < batch.offsets[row + 1]; ++e)
      input[row * batch.neurons + batch.ids[e]] += 1;
  }

  std::vector<DenseLayer<Number>> layers;
  for (std::size_t l = 0; l < network.layers.size(); ++l)
    layers.emplace_back(network.layers[l], network.inputs_of(l), parameters.layers[l], window_low,
                        bptt_steps > 0 ? bptt_steps : batch.steps);
  std::vector<std::vector<Number>> sent;    // by each layer
  std::vector<std::vector<Number>> inputs;  // of each layer: its sources side by side
  const auto visit_sources = [&](std::size_t l, auto visit) {
    int first = 0;
    for (const int source : network.sources_of(l)) {
      visit(source, first);
      first += network.size_of(source);
    }
  };
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const std::size_t width = network.inputs_of(l);
    inputs.emplace_back(rows * width);
    visit_sources(l, [&](int source, int first) {
      const std::vector<Number>& from = source < 0 ? input : sent[source];
      const std::size_t size = network.size_of(source);
      for (std::size_t at = 0; at < from.size(); ++at) inputs[l][at / size * width + first + at % size] = from[at];
    });
    layers[l].forward(inputs[l], samples, batch.steps, l < forced.size() ? &forced[l] : nullptr, result);
    std::uint64_t spikes = 0;
    for (const Number s : layers[l].spike) spikes += s != 0;
    result.spikes.push_back(spikes);
    layers[l].choose_outgoing(rows, batch.steps, dropout);
    sent.push_back(layers[l].sent(batch.steps));
  }

  const DenseLayer<Number>& last = layers.back();
  std::vector<std::vector<Number>> gradients;  // dLoss/d of what each layer sent
  for (const DenseLayer<Number>& layer : layers) gradients.emplace_back(rows * layer.size, 0);
  std::vector<Number>& gradient = gradients.back();
  const Number scale = Number{1} / static_cast<Number>(samples);
  for (std::size_t sample = 0; sample < samples; ++sample) {
    const std::size_t at = sample * batch.steps * last.size;
    if (!last.spec.spiking()) {
      result.loss +=
          loss(static_cast<int>(sample), last.membrane.data() + at, gradient.data() + at, batch.labels[sample], scale);
      continue;
    }
    std::vector<Number> counts(last.size, 0), count_gradient(last.size, 0);
    for (int step = 0; step < batch.steps; ++step) {
      for (int c = 0; c < last.size; ++c) counts[c] += last.spike[at + static_cast<std::size_t>(step) * last.size + c];
    }
    result.loss += loss(static_cast<int>(sample), counts.data(), count_gradient.data(), batch.labels[sample], scale);
    for (int step = 0; step < batch.steps; ++step)
      std::copy(count_gradient.begin(), count_gradient.end(), gradient.begin() + at + step * last.size);
  }

  result.weight_gradient.resize(layers.size());
  result.recurrent_weight_gradient.resize(layers.size());
  result.bias_gradient.resize(layers.size());
  result.neuron_gradient.resize(layers.size());
  for (std::size_t l = layers.size(); l-- > 0;) {
    layers[l].take_back(batch.steps, gradients[l]);
    if (layers[l].spec.spiking()) result.regulariser += add_regulariser(layers[l], rows, gradients[l]);
    LayerGradient<Number> of_layer{result.weight_gradient[l], result.recurrent_weight_gradient[l],
                                   result.bias_gradient[l], result.neuron_gradient[l]};
    const std::vector<Number> of_input = layers[l].backward(inputs[l], gradients[l], samples, batch.steps, of_layer);
    const std::size_t width = network.inputs_of(l);
    visit_sources(l, [&](int source, int first) {
      if (source < 0) return;
      const std::size_t size = network.size_of(source);
      for (std::size_t at = 0; at < gradients[source].size(); ++at)
        gradients[source][at] += of_input[at / size * width + first + at % size];
    });
  }
  return result;
}

template ReferenceResult<float> reference_step(const NetworkSpec&, const Parameters&, const SpikeBatch&,
                                               const ReferenceLoss<float>&, const std::vector<ForcedDecisions>&, double,
                                               const DropoutDraw&, int);
template ReferenceResult<double> reference_step(const NetworkSpec&, const Parameters&, const SpikeBatch&,
                                                const ReferenceLoss<double>&, const std::vector<ForcedDecisions>&,
                                                double, const DropoutDraw&, int);

}  // namespace spikeloom
