#include "engine/reference.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
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

constexpr int kMostStates = 2;

/// One layer over the whole batch; arrays are (samples * steps, size) where nothing else is said.
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

  void start(std::size_t rows, const ForcedDecisions* forced);
  /// One row, (sample, step), whose input is there: rows ascend within a sample.
  void forward(std::size_t row, bool first_step, ReferenceResult<Number>& result);
  /// Fills `passed`: dropout leaves out what it draws; then a list holds spike_budget ids, spikes first, then neurons
  /// that are only active, in ascending id. Then `sent`, where it arrives.
  void send(std::size_t row, int steps, const DropoutDraw& dropout);
  /// Makes `rate_gradient` and returns the regulariser.
  double regularise(std::size_t rows);
  /// One row, descending within a sample: from `of_sent` to the gradients; returns dLoss/dinput, (inputs).
  std::vector<Number> backward(std::size_t row, int steps);
  std::map<NeuronParameter, std::vector<Number>> neuron_gradients() const;

  const std::vector<Number>& output() const { return spec.spiking() ? spike : membrane; }
  /// The place in `sent` of what neuron j sends in a row, if it arrives within the sample.
  std::optional<std::size_t> arrives(std::size_t row, int steps, int j) const;
  /// Whether gradients go from a row back to an earlier one of its sample.
  bool reaches_back(std::size_t row, std::size_t earlier, int steps) const {
    return static_cast<int>(row % steps) / chunk_steps == static_cast<int>(earlier % steps) / chunk_steps;
  }

  using States = std::array<Number, kMostStates>;  // of one neuron, for any model
  /// The input current of neuron j.
  Number current_of(std::size_t row, bool first_step, int j) const;
  /// What neuron j does at `at`, its place at a step: from what the step before handed on to what it hands on.
  void spiking_step(std::size_t at, int j, ReferenceResult<Number>& result);
  /// dLoss/dI of neuron j, from dLoss/ds and dLoss/d(handed on), which becomes that of the step before; adds to the
  /// gradients of its constants.
  Number spiking_adjoint(std::size_t at, int j, Number gradient);
  /// Ends the gradients that reach a row's states and spikes from later rows; the part of the constants in what the row
  /// hands on still counts.
  void end_chunk(std::size_t row);
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
  std::vector<Number> input;  // (rows, inputs): its sources side by side
  std::vector<Number> current;
  std::vector<Number> membrane;  // of spiking neurons the potential that is compared with the threshold
  std::vector<States> states;
  std::vector<Number> spike;
  std::vector<Number> derivative;  // h, 0 outside the active set
  bool follows = false;            // decisions taken elsewhere:
  std::vector<char> forced_spikes, forced_active;
  std::vector<char> in_window;                    // the active set
  std::vector<Number> passed;                     // what the neuron's spike counts elsewhere, if it spikes; 0: dropped
  std::vector<Number> sent, of_sent;              // what other layers receive, and dLoss/d of that
  std::vector<States> handed_on, later;           // (size): from step to step, and going back dLoss/d of it
  std::vector<Number> from_later;                 // (size): dLoss/ds through the layer's own weights
  std::vector<Number> rate_gradient;              // (size)
  std::vector<Number> weight_gradient;            // (size, inputs)
  std::vector<Number> recurrent_weight_gradient;  // (size, size) or empty
  std::vector<Number> bias_gradient;              // (size)
  std::vector<std::array<double, kNeuronConstants>> constant_gradients;  // (size)
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
Number DenseLayer<Number>::current_of(std::size_t row, bool first_step, int j) const {
  Number sum = parameters.bias.empty() ? Number{0} : static_cast<Number>(parameters.bias[j]);
  for (int i = 0; i < inputs; ++i) sum += weight(parameters.weight, j, i, inputs) * input[row * inputs + i];
  if (!spec.recurrent || first_step) return sum;
  for (int i = 0; i < size; ++i) sum += weight(parameters.recurrent_weight, j, i, size) * spike[(row - 1) * size + i];
  return sum;
}

template <class Number>
void DenseLayer<Number>::spiking_step(std::size_t at, int j, ReferenceResult<Number>& result) {
  const Number threshold = constants[NeuronConstant::threshold][j];
  const Number low = constants[NeuronConstant::window_low][j], high = constants[NeuronConstant::window_high][j];
  scalar::with_model(spec.neuron, [&]<class Model>(Model) {
    const auto c = scalar::constants_of<Model, Number>(constants, j);
    Number state[Model::kStates];
    std::copy_n(handed_on[j].begin(), Model::kStates, state);
    const Number v = membrane[at] = Model::integrate(c, current[at], state);
    std::copy_n(state, Model::kStates, states[at].begin());
    bool fires = v > threshold;
    bool active = v > low && v <= high;
    if (follows) {
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
    std::copy_n(state, Model::kStates, handed_on[j].begin());
  });
}

template <class Number>
void DenseLayer<Number>::start(std::size_t rows, const ForcedDecisions* forced) {
  for (std::vector<Number>* array : {&current, &membrane, &spike, &derivative, &sent, &of_sent})
    array->assign(rows * size, 0);
  in_window.assign(rows * size, 0);
  states.assign(rows * size, {});
  input.assign(rows * inputs, 0);
  passed.assign(rows * size, static_cast<Number>(1.0 / (1.0 - spec.dropout)));
  follows = forced != nullptr;
  if (forced) forced_spikes = as_mask(forced->spikes, rows, size), forced_active = as_mask(forced->active, rows, size);
  weight_gradient.assign(static_cast<std::size_t>(size) * inputs, 0);
  recurrent_weight_gradient.assign(spec.recurrent ? static_cast<std::size_t>(size) * size : 0, 0);
  bias_gradient.assign(size, 0);
  constant_gradients.assign(size, {});
}

template <class Number>
void DenseLayer<Number>::forward(std::size_t row, bool first_step, ReferenceResult<Number>& result) {
  if (first_step) handed_on.assign(size, States{});
  for (int j = 0; j < size; ++j) {
    const std::size_t at = row * size + j;
    current[at] = current_of(row, first_step, j);
    if (spec.spiking()) {
      spiking_step(at, j, result);
    } else {
      membrane[at] = scalar::LeakyIntegrator::integrate(integrator(j), handed_on[j][0], current[at]);
      handed_on[j][0] = scalar::LeakyIntegrator::carry(integrator(j), membrane[at]);
    }
  }
}

template <class Number>
void DenseLayer<Number>::send(std::size_t row, int steps, const DropoutDraw& draw) {
  const std::size_t begin = row * size, end = begin + size;
  if (spec.dropout > 0.0) {
    const RandomStream random(draw.seed, "dropout/" + spec.name, draw.step);
    for (std::size_t at = begin; at < end; ++at) {
      if (random.bits_at(draw.first_sample * steps * size + at) / 4294967296.0 < spec.dropout) passed[at] = 0;
    }
  }
  if (spec.spike_budget > 0) {
    int listed = 0;
    const auto list_where = [&](auto belongs) {
      for (std::size_t at = begin; at < end; ++at) {
        if (passed[at] != 0 && belongs(at) && listed++ >= spec.spike_budget) passed[at] = 0;
      }
    };
    list_where([&](std::size_t at) { return spike[at] != 0; });
    list_where([&](std::size_t at) { return spike[at] == 0 && in_window[at]; });
  }
  for (int j = 0; j < size; ++j) {
    if (const auto arrival = arrives(row, steps, j)) sent[*arrival] = passed[begin + j] * output()[begin + j];
  }
}

template <class Number>
std::optional<std::size_t> DenseLayer<Number>::arrives(std::size_t row, int steps, int j) const {
  const int delay = parameters.delay.empty() ? 0 : static_cast<int>(parameters.delay[j]);
  if (static_cast<int>(row % steps) + delay >= steps) return std::nullopt;
  return (row + delay) * size + j;
}

template <class Number>
double DenseLayer<Number>::regularise(std::size_t rows) {
  double total = 0.0;
  rate_gradient.assign(size, 0);
  if (!spec.spiking()) return total;
  for (int j = 0; j < size; ++j) {
    double rate = 0.0;
    for (std::size_t row = 0; row < rows; ++row) rate += static_cast<double>(spike[row * size + j]);
    rate /= static_cast<double>(rows);
    const double below = std::max(0.0, spec.rate_lower - rate), above = std::max(0.0, rate - spec.rate_upper);
    total += (spec.rate_lower_weight * below * below + spec.rate_upper_weight * above * above) / size;
    rate_gradient[j] = static_cast<Number>(2.0 * (spec.rate_upper_weight * above - spec.rate_lower_weight * below) /
                                           (size * static_cast<double>(rows)));
  }
  return total;
}

template <class Number>
Number DenseLayer<Number>::spiking_adjoint(std::size_t at, int j, Number gradient) {
  return scalar::with_model(spec.neuron, [&]<class Model>(Model) {
    const auto c = scalar::constants_of<Model, Number>(constants, j);
    Number state[Model::kStates], before[Model::kStates], now[Model::kStates], driven[Model::kStates];
    std::copy_n(states[at].begin(), Model::kStates, state);
    std::copy_n(later[j].begin(), Model::kStates, before);
    std::copy_n(later[j].begin(), Model::kStates, now);
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
      constant_gradients[j][static_cast<int>(which)] += static_cast<double>(value);
    });
    std::copy_n(now, Model::kStates, later[j].begin());
    return to_input;
  });
}

template <class Number>
void DenseLayer<Number>::end_chunk(std::size_t row) {
  for (int j = 0; j < size && spec.spiking(); ++j) {
    const std::size_t at = row * size + j;
    scalar::with_model(spec.neuron, [&]<class Model>(Model) {
      Number state[Model::kStates], before[Model::kStates], none[Model::kStates] = {};
      std::copy_n(states[at].begin(), Model::kStates, state);
      std::copy_n(later[j].begin(), Model::kStates, before);
      typename Model::template Constants<Number> sum{};
      Model::add_gradients(spike[at] != 0, Number{0}, state, Number{0}, before, none, sum);
      Model::visit(sum, [&](NeuronConstant which, Number& value) {
        constant_gradients[j][static_cast<int>(which)] += static_cast<double>(value);
      });
    });
  }
  later.assign(size, States{});
  from_later.assign(size, 0);
}

template <class Number>
std::vector<Number> DenseLayer<Number>::backward(std::size_t row, int steps) {
  const bool last_step = (row + 1) % steps == 0, first_step = row % steps == 0;
  if (last_step) later.assign(size, States{}), from_later.assign(size, 0);
  const std::vector<Number> from_itself = std::exchange(from_later, std::vector<Number>(size, 0));
  std::vector<Number> input_gradient(inputs, 0);
  for (int j = 0; j < size; ++j) {
    const std::size_t at = row * size + j;
    const auto arrival = arrives(row, steps, j);
    const bool counts = arrival && reaches_back(*arrival / size, row, steps);
    const Number from_above = (counts ? passed[at] * of_sent[*arrival] : Number{0}) + rate_gradient[j];
    Number scaled;
    if (spec.spiking()) {
      scaled = spiking_adjoint(at, j, from_above + from_itself[j]);
    } else {
      later[j][0] = scalar::LeakyIntegrator::adjoint(integrator(j), from_above, later[j][0]);
      scaled = constants[NeuronConstant::gain][j] * later[j][0];
    }
    bias_gradient[j] += scaled;
    for (int i = 0; i < inputs; ++i) {
      weight_gradient[static_cast<std::size_t>(j) * inputs + i] += scaled * input[row * inputs + i];
      input_gradient[i] += scaled * weight(parameters.weight, j, i, inputs);
    }
    if (!spec.recurrent || first_step) continue;
    for (int i = 0; i < size; ++i) {
      recurrent_weight_gradient[static_cast<std::size_t>(j) * size + i] += scaled * spike[(row - 1) * size + i];
      from_later[i] += scaled * weight(parameters.recurrent_weight, j, i, size);
    }
  }
  if (!first_step && !reaches_back(row, row - 1, steps)) end_chunk(row - 1);
  return input_gradient;
}

template <class Number>
std::map<NeuronParameter, std::vector<Number>> DenseLayer<Number>::neuron_gradients() const {
  std::map<NeuronParameter, std::vector<Number>> gradients;
  for (const NeuronParameter parameter : spec.learn) {
    for (int j = 0; j < size; ++j)
      gradients[parameter].push_back(
          static_cast<Number>(parameter_gradient(spec, parameters, j, constant_gradients[j], parameter)));
  }
  return gradients;
}

/// All layers, step by step: within a step in their order, so that what a later one sends arrives in the next.
template <class Number>
class DenseNetwork {
 public:
  DenseNetwork(const NetworkSpec& network, const Parameters& parameters, const SpikeBatch& batch, double window_low,
               int bptt_steps)
      : network_(network), batch_(batch), data_(batch.rows() * batch.neurons, 0) {
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      for (std::uint32_t e = batch.offsets[row]; e < batch.offsets[row + 1]; ++e)
        data_[row * batch.neurons + batch.ids[e]] += 1;
    }
    for (std::size_t l = 0; l < network.layers.size(); ++l)
      layers.emplace_back(network.layers[l], network.inputs_of(l), parameters.layers[l], window_low,
                          bptt_steps > 0 ? bptt_steps : batch.steps);
  }

  void forward(const std::vector<ForcedDecisions>& forced, const DropoutDraw& dropout,
               ReferenceResult<Number>& result) {
    for (std::size_t l = 0; l < layers.size(); ++l)
      layers[l].start(batch_.rows(), l < forced.size() ? &forced[l] : nullptr);
    for (std::size_t row = 0; row < batch_.rows(); ++row) {
      for (std::size_t l = 0; l < layers.size(); ++l) {
        Number* to = layers[l].input.data() + row * layers[l].inputs;
        visit_sources(l, row,
                      [&](int source, const Number* sent) { to = std::copy_n(sent, network_.size_of(source), to); });
        layers[l].forward(row, row % batch_.steps == 0, result);
        layers[l].send(row, batch_.steps, dropout);
      }
    }
  }

  /// From dLoss/d(sent) of the last layer.
  void backward() {
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch_.samples); ++sample) {
      for (std::size_t row = (sample + 1) * batch_.steps; row-- > sample * batch_.steps;) {
        for (std::size_t l = layers.size(); l-- > 0;) {
          const std::vector<Number> gradient = layers[l].backward(row, batch_.steps);
          const Number* from = gradient.data();
          for (const int source : network_.sources_of(l)) {
            const int size = network_.size_of(source), lag = NetworkSpec::lag_of(source, l);
            const bool arrived = static_cast<int>(row % batch_.steps) >= lag;
            if (source >= 0 && arrived && layers[l].reaches_back(row, row - lag, batch_.steps)) {
              Number* to = layers[source].of_sent.data() + (row - lag) * size;
              for (int i = 0; i < size; ++i) to[i] += from[i];
            }
            from += size;
          }
        }
      }
    }
  }

  std::vector<DenseLayer<Number>> layers;

 private:
  /// What arrives at a layer from each of its sources.
  template <class Visit>
  void visit_sources(std::size_t l, std::size_t row, Visit visit) const {
    for (const int source : network_.sources_of(l)) {
      const int size = network_.size_of(source), lag = NetworkSpec::lag_of(source, l);
      const std::vector<Number> nothing(size, 0);
      const bool arrived = static_cast<int>(row % batch_.steps) >= lag;
      const std::vector<Number>& from = source < 0 ? data_ : layers[source].sent;
      visit(source, arrived ? from.data() + (row - lag) * size : nothing.data());
    }
  }

  const NetworkSpec& network_;
  const SpikeBatch& batch_;
  std::vector<Number> data_;
};

/// The loss of all samples; writes dLoss/d(sent) of the last layer.
template <class Number>
double loss_of(DenseLayer<Number>& last, const SpikeBatch& batch, const ReferenceLoss<Number>& loss) {
  const Number scale = Number{1} / static_cast<Number>(batch.samples);
  double total = 0.0;
  for (int sample = 0; sample < batch.samples; ++sample) {
    const std::size_t at = static_cast<std::size_t>(sample) * batch.steps * last.size;
    if (!last.spec.spiking()) {
      total += loss(sample, last.membrane.data() + at, last.of_sent.data() + at, batch.labels[sample], scale);
      continue;
    }
    std::vector<Number> counts(last.size, 0), gradient(last.size, 0);
    for (int step = 0; step < batch.steps; ++step) {
      for (int c = 0; c < last.size; ++c) counts[c] += last.spike[at + static_cast<std::size_t>(step) * last.size + c];
    }
    total += loss(sample, counts.data(), gradient.data(), batch.labels[sample], scale);
    for (int step = 0; step < batch.steps; ++step)
      std::copy(gradient.begin(), gradient.end(), last.of_sent.begin() + at + step * last.size);
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
  DenseNetwork<Number> dense(network, parameters, batch, window_low, bptt_steps);
  dense.forward(forced, dropout, result);
  result.loss = loss_of(dense.layers.back(), batch, loss);
  for (std::size_t l = dense.layers.size(); l-- > 0;) result.regulariser += dense.layers[l].regularise(batch.rows());
  dense.backward();
  for (DenseLayer<Number>& layer : dense.layers) {
    result.spikes.push_back(std::count_if(layer.spike.begin(), layer.spike.end(), [](Number s) { return s != 0; }));
    result.weight_gradient.push_back(std::move(layer.weight_gradient));
    result.recurrent_weight_gradient.push_back(std::move(layer.recurrent_weight_gradient));
    result.bias_gradient.push_back(std::move(layer.bias_gradient));
    result.neuron_gradient.push_back(layer.neuron_gradients());
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
