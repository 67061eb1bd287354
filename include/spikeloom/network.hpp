// What a network is: its layers and their constants. No weights and no runtime state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace spikeloom {

/// lif ... se_adlif spike; the other two don't.
enum class NeuronKind { lif, integrate_and_fire, cuba_lif, alif, adlif, se_adlif, leaky_integrator, linear };
enum class ResetKind { zero, subtract, subtract_after_decay, none };
enum class SurrogateKind { superspike, triangle, box, quadratic, arctan };
enum class InputScaling { none, leak };
enum class InitKind { rate, lsuv, kaiming, uniform, normal };
enum class RecurrentInitKind { orthogonal, normal };

/// A constant that is one number for the layer (low == high) or drawn per neuron, uniformly in [low, high].
struct Range {
  Range(double one = 0.0) : low(one), high(one) {}
  Range(double a_low, double a_high) : low(a_low), high(a_high) {}
  bool one() const { return low == high; }
  double mean() const { return (low + high) / 2.0; }
  bool operator==(const Range&) const = default;
  double low;
  double high;
};

/// How fast a state decays. The decay per step comes from tau (exp(-step/tau)) unless `decay_given`.
struct TimeConstant {
  bool decay_given = false;
  Range decay;
  Range tau_ms;
};

/// Constants that every neuron may have for itself: decays per step of membrane (alpha), synaptic current and
/// adaptation, the threshold, and what drives the adaptation: the membrane (a) and a spike (b; of alif beta).
enum class NeuronParameter { decay, decay_syn, decay_adapt, threshold, adapt_membrane, adapt_spike };
inline constexpr NeuronParameter kNeuronParameters[] = {NeuronParameter::decay,          NeuronParameter::decay_syn,
                                                        NeuronParameter::decay_adapt,    NeuronParameter::threshold,
                                                        NeuronParameter::adapt_membrane, NeuronParameter::adapt_spike};
/// Whether neurons of this kind have such a constant.
bool has_constant(NeuronKind neuron, NeuronParameter parameter);

/// The surrogate derivative h of the spike, as a function of x = u - threshold; zero outside (window_low, window_high],
/// which is in units of the threshold and compared with u. `beta` is the slope of superspike, quadratic and arctan (its
/// a); `gamma` the height of the triangle.
struct SurrogateSpec {
  SurrogateKind kind = SurrogateKind::superspike;
  double beta = 10.0;
  double gamma = 1.0;
  double window_low = 0.9;
  double window_high = std::numeric_limits<double>::infinity();
  bool operator==(const SurrogateSpec&) const = default;
};

/// The name of the data among the inputs of a layer.
inline constexpr const char* kDataInput = "data";

/// One layer: weights from the layer below (or from the data), a population of equal neurons, and, if `recurrent`,
/// weights from every neuron of it to every neuron of it, which its spikes reach one step later.
struct LayerSpec {
  std::string name;
  NeuronKind neuron = NeuronKind::lif;
  int size = 0;
  TimeConstant membrane{false, 0.95, 200.0};
  TimeConstant synapse{false, 0.9, 10.0};       // cuba_lif
  TimeConstant adaptation{false, 0.95, 200.0};  // alif, adlif, se_adlif
  Range threshold = 1.0;
  Range adapt_membrane;       // a of adlif and se_adlif
  Range adapt_spike = 1.8;    // b of adlif and se_adlif, beta of alif
  double adapt_gain = 120.0;  // q of se_adlif
  bool adapt_scaled = true;   // alif: a spike adds 1 - decay to b, instead of 1
  /// Constants that training changes, one number per neuron. They stay in their range where that is not one number,
  /// else in `limits_of`.
  std::vector<NeuronParameter> learn;
  ResetKind reset = ResetKind::zero;
  bool reset_gradient = false;  // false: the reset is a constant in the backward pass (detached)
  double input_gain = 1.0;      // k, or with InputScaling::leak k = (1 - alpha) input_gain
  InputScaling input_scaling = InputScaling::none;
  bool bias = true;
  bool recurrent = false;
  SurrogateSpec surrogate;
  InitKind init = InitKind::rate;
  double init_gain = 1.0;
  double init_rate = 0.02;  // target of InitKind::rate: spikes per neuron and step
  RecurrentInitKind recurrent_init = RecurrentInitKind::orthogonal;
  double recurrent_gain = 1.0;
  // Firing-rate regularisers on the mean rate r_j of neuron j over batch and steps: weight * mean_j max(0, lower -
  // r_j)^2, and the same above `upper`.
  double rate_lower = 0.0;
  double rate_lower_weight = 0.0;
  double rate_upper = 1.0;
  double rate_upper_weight = 0.0;
  // Mean rate of the layer that training holds; 0 is off.
  double activity_target = 0.0;
  double rescue_active = 0.0;  // while a smaller fraction of the neurons is active in a batch, the window widens
  /// Where the layer takes its spikes from: names of other layers, and kDataInput. Those of a later layer arrive one
  /// step later (feedback). None: the layer before, or the data.
  std::vector<std::string> inputs;
  // What happens to spikes on their way to the next layer; nothing by default.
  int spike_budget = 0;         // most ids in the list of a (sample, step); 0 is off
  double dropout = 0.0;         // probability that a spike is left out in training
  Range delay_steps{0.0, 0.0};  // steps that a spike takes, whole; drawn per neuron

  bool spiking() const { return neuron < NeuronKind::leaky_integrator; }
  bool learns(NeuronParameter parameter) const {
    return std::find(learn.begin(), learn.end(), parameter) != learn.end();
  }
  /// The value, or the range of values, that the neurons start with.
  const Range& initial(NeuronParameter parameter) const;
  /// Whether the next layer may receive other spikes than the layer has.
  bool changes_outgoing() const { return spike_budget > 0 || dropout > 0.0 || delayed(); }
  bool delayed() const { return delay_steps.high > 0.0; }
};

struct NetworkSpec {
  int channels = 0;  // neurons of the input
  int steps = 0;     // T
  double step_ms = 1.0;
  std::vector<LayerSpec> layers;

  /// Where a layer takes its input from, in the order of the columns of its weights: layers by number, or -1, the data.
  std::vector<int> sources_of(std::size_t layer) const;
  /// Steps that spikes of such a source take to the layer: 1 where it is feedback, from a later layer, else 0.
  static int lag_of(int source, std::size_t layer) { return source > static_cast<int>(layer) ? 1 : 0; }
  /// Neurons of such a source.
  int size_of(int source) const { return source < 0 ? channels : layers[source].size; }
  /// Neurons of all sources of a layer.
  int inputs_of(std::size_t layer) const;
  /// The strongly connected parts of the graph of layers: layers that reach each other through feedback are in one, in
  /// ascending order; any other layer is one of its own. A part comes after those that it takes spikes from.
  std::vector<std::vector<int>> connected_parts() const;
  int outputs() const { return layers.back().size; }
};

/// Where a learned constant of the layer is kept: in its range if it has one, else where the model makes sense.
Range limits_of(const LayerSpec& layer, NeuronParameter parameter);

/// Checks what no single setting can: at least one layer; unique names; spiking layers first, then at most one `li` and
/// one `linear`, in this order; sizes from 1 to 2^20. Throws UserError naming the layer.
void validate(const NetworkSpec& network);

}  // namespace spikeloom
