#include "network/parameters.hpp"

#include <algorithm>
#include <cmath>

#include <spikeloom/error.hpp>
#include "core/elementary.hpp"
#include "core/random.hpp"

namespace spikeloom {
namespace {

const TimeConstant* time_constant_of(const LayerSpec& layer, NeuronParameter parameter) {
  switch (parameter) {
    case NeuronParameter::decay:
      return &layer.membrane;
    case NeuronParameter::decay_syn:
      return &layer.synapse;
    case NeuronParameter::decay_adapt:
      return &layer.adaptation;
    default:
      return nullptr;
  }
}

/// A constant per neuron, drawn uniformly where the layer gives a range (of decays or of time constants).
std::vector<float> draw_constants(const NetworkSpec& network, const LayerSpec& layer, NeuronParameter parameter,
                                  std::uint64_t seed) {
  const RandomStream random(seed, std::string(name_of(kind_of(parameter))) + "/" + layer.name);
  const TimeConstant* time = time_constant_of(layer, parameter);
  const bool from_tau = time && !time->decay_given;
  const Range range = from_tau ? time->tau_ms : layer.initial(parameter);
  std::vector<float> numbers(layer.size);
  for (int j = 0; j < layer.size; ++j) {
    const double drawn = range.one() ? range.low : range.low + (range.high - range.low) * random.uniform_at(j);
    numbers[j] = static_cast<float>(from_tau ? exponential(-network.step_ms / drawn) : drawn);
  }
  return numbers;
}

/// Delay per neuron, every whole number of the layer's range as likely.
std::vector<float> draw_delays(const LayerSpec& layer, std::uint64_t seed) {
  const RandomStream random(seed, "delay/" + layer.name);
  const auto choices = static_cast<std::uint64_t>(layer.delay_steps.high - layer.delay_steps.low) + 1;
  std::vector<float> delay(layer.size);
  for (int j = 0; j < layer.size; ++j)
    delay[j] = static_cast<float>(layer.delay_steps.low + static_cast<double>(random.below_at(j, choices)));
  return delay;
}

double dot(const double* a, const double* b, std::size_t size) {
  constexpr std::size_t kLanes = 8;  // sums that the compiler may keep in vectors
  double lane[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l];
  }
  double sum = 0.0;
  for (; i < size; ++i) sum += a[i] * b[i];
  for (const double part : lane) sum += part;
  return sum;
}

/// Makes the rows of `matrix` (rows, columns), rows <= columns, orthonormal by modified Gram-Schmidt. Rows of random
/// numbers are far from dependent, so one pass is accurate to some 1e-12.
void orthonormalise_rows(std::vector<double>& matrix, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    double* row = matrix.data() + r * columns;
    for (std::size_t q = 0; q < r; ++q) {
      const double* other = matrix.data() + q * columns;
      const double overlap = dot(row, other, columns);
      for (std::size_t i = 0; i < columns; ++i) row[i] -= overlap * other[i];
    }
    const double inverse = 1.0 / std::sqrt(dot(row, row, columns));
    for (std::size_t i = 0; i < columns; ++i) row[i] *= inverse;
  }
}

/// (outputs, inputs) with orthonormal rows, or columns where there are more outputs than inputs, as
/// torch.nn.init.orthogonal_.
std::vector<float> orthogonal_weights(const RandomStream& random, std::size_t outputs, std::size_t inputs,
                                      double gain) {
  const std::size_t rows = std::min(outputs, inputs);
  const std::size_t columns = std::max(outputs, inputs);
  std::vector<double> matrix(rows * columns);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = random.normal_at(i);
  orthonormalise_rows(matrix, rows, columns);
  std::vector<float> weight(outputs * inputs);
  for (std::size_t j = 0; j < outputs; ++j) {
    for (std::size_t i = 0; i < inputs; ++i) {
      weight[j * inputs + i] =
          static_cast<float>(gain * (outputs <= inputs ? matrix[j * inputs + i] : matrix[i * outputs + j]));
    }
  }
  return weight;
}

std::vector<float> draw_recurrent_weights(const LayerSpec& layer, std::uint64_t seed) {
  const RandomStream random(seed, "recurrent_weight/" + layer.name);
  const auto size = static_cast<std::size_t>(layer.size);
  if (layer.recurrent_init == RecurrentInitKind::orthogonal)
    return orthogonal_weights(random, size, size, layer.recurrent_gain);
  const double deviation = layer.recurrent_gain / std::sqrt(static_cast<double>(size));
  std::vector<float> weight(size * size);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(deviation * random.normal_at(i));
  return weight;
}

std::vector<float> draw_weights(const LayerSpec& layer, std::size_t inputs, std::uint64_t seed) {
  const RandomStream random(seed, "weight/" + layer.name);
  const auto outputs = static_cast<std::size_t>(layer.size);
  if (layer.init == InitKind::lsuv) return orthogonal_weights(random, outputs, inputs, layer.init_gain);
  const double root = std::sqrt(static_cast<double>(inputs));
  std::vector<float> weight(outputs * inputs);
  for (std::size_t i = 0; i < weight.size(); ++i) {
    double value = 0.0;
    switch (layer.init) {
      case InitKind::uniform:
        value = (2.0 * random.uniform_at(i) - 1.0) / root;
        break;
      case InitKind::kaiming:
        value = random.normal_at(i) * std::sqrt(2.0) / root;
        break;
      case InitKind::normal:
      case InitKind::rate:
      case InitKind::lsuv:
        value = random.normal_at(i) / root;
        break;
    }
    weight[i] = static_cast<float>(layer.init_gain * value);
  }
  return weight;
}

}  // namespace

std::string_view name_of(ParameterKind kind) {
  constexpr std::string_view kNames[] = {"weight",      "recurrent_weight", "bias",           "decay",      "decay_syn",
                                         "decay_adapt", "threshold",        "adapt_membrane", "adapt_spike"};
  return kNames[static_cast<int>(kind)];
}

ParameterKind kind_of(NeuronParameter parameter) {
  return static_cast<ParameterKind>(static_cast<int>(ParameterKind::decay) + static_cast<int>(parameter));
}

bool has_constant(NeuronKind neuron, NeuronParameter parameter) {
  const bool adapts = neuron == NeuronKind::adlif || neuron == NeuronKind::se_adlif;
  switch (parameter) {
    case NeuronParameter::decay:
      return neuron != NeuronKind::linear && neuron != NeuronKind::integrate_and_fire;
    case NeuronParameter::decay_syn:
      return neuron == NeuronKind::cuba_lif;
    case NeuronParameter::decay_adapt:
    case NeuronParameter::adapt_spike:
      return adapts || neuron == NeuronKind::alif;
    case NeuronParameter::threshold:
      return neuron < NeuronKind::leaky_integrator;
    case NeuronParameter::adapt_membrane:
      return adapts;
  }
  throw InternalError("unknown neuron parameter");
}

const Range& LayerSpec::initial(NeuronParameter parameter) const {
  switch (parameter) {
    case NeuronParameter::decay:
      return membrane.decay;
    case NeuronParameter::decay_syn:
      return synapse.decay;
    case NeuronParameter::decay_adapt:
      return adaptation.decay;
    case NeuronParameter::threshold:
      return threshold;
    case NeuronParameter::adapt_membrane:
      return adapt_membrane;
    case NeuronParameter::adapt_spike:
      return adapt_spike;
  }
  throw InternalError("unknown neuron parameter");
}

Range limits_of(const LayerSpec& layer, NeuronParameter parameter) {
  const Range& given = layer.initial(parameter);
  if (!given.one()) return given;
  switch (parameter) {
    case NeuronParameter::decay:
    case NeuronParameter::decay_syn:
    case NeuronParameter::decay_adapt:
      return {0.0, 1.0};
    case NeuronParameter::threshold:
      return {0.1 * given.low, 10.0 * given.low};
    case NeuronParameter::adapt_membrane:
      return {std::min(layer.neuron == NeuronKind::adlif ? -1.0 : 0.0, given.low), std::max(1.0, given.low)};
    case NeuronParameter::adapt_spike:
      return {0.0, std::max(2.0, 10.0 * given.low)};
  }
  throw InternalError("unknown neuron parameter");
}

bool has_parameter(const LayerSpec& layer, ParameterKind kind) {
  switch (kind) {
    case ParameterKind::weight:
      return true;
    case ParameterKind::recurrent_weight:
      return layer.recurrent;
    case ParameterKind::bias:
      return layer.bias;
    default:
      return std::any_of(layer.learn.begin(), layer.learn.end(), [&](NeuronParameter parameter) {
        return kind_of(parameter) == kind && has_constant(layer.neuron, parameter);
      });
  }
}

bool is_stored(const LayerSpec& layer, NeuronParameter parameter) {
  if (!has_constant(layer.neuron, parameter)) return false;
  const bool is_decay = parameter != NeuronParameter::threshold && parameter != NeuronParameter::adapt_membrane &&
                        parameter != NeuronParameter::adapt_spike;
  return is_decay || layer.learns(parameter) || !layer.initial(parameter).one();
}

std::size_t parameter_columns(const NetworkSpec& network, std::size_t layer, ParameterKind kind) {
  if (kind == ParameterKind::weight) return static_cast<std::size_t>(network.inputs_of(layer));
  return kind == ParameterKind::recurrent_weight ? static_cast<std::size_t>(network.layers[layer].size) : 1;
}

std::vector<float>& LayerParameters::of(ParameterKind kind) {
  std::vector<float>* const all[] = {&weight,      &recurrent_weight, &bias,           &decay,      &decay_syn,
                                     &decay_adapt, &threshold,        &adapt_membrane, &adapt_spike};
  return *all[static_cast<int>(kind)];
}

Parameters initial_parameters(const NetworkSpec& network, std::uint64_t seed) {
  Parameters parameters;
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const LayerSpec& layer = network.layers[l];
    LayerParameters& numbers = parameters.layers.emplace_back();
    numbers.weight = draw_weights(layer, static_cast<std::size_t>(network.inputs_of(l)), seed);
    if (layer.recurrent) numbers.recurrent_weight = draw_recurrent_weights(layer, seed);
    if (layer.bias) numbers.bias.assign(layer.size, 0.0F);
    for (const NeuronParameter parameter : kNeuronParameters) {
      if (is_stored(layer, parameter) || parameter == NeuronParameter::decay)
        numbers.of(parameter) = draw_constants(network, layer, parameter, seed);
    }
    if (layer.delayed()) numbers.delay = draw_delays(layer, seed);
  }
  return parameters;
}

}  // namespace spikeloom
