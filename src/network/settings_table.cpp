// The table itself: one entry per setting. To add one: a member in the struct, a line here, and `spikeloom info
// --settings-markdown`.
#include <limits>

#include "network/setting_kinds.hpp"

namespace spikeloom {
namespace {

using namespace setting_kinds;

constexpr std::int64_t kMany = 1 << 20;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Names a setting of some kind.
struct Named {
  std::string name;
  std::string unit;
  std::string sentence;
  std::string default_note = {};
};

Setting entry(std::string section, Named named, Setting kind) {
  kind.section = std::move(section);
  kind.name = std::move(named.name);
  kind.unit = std::move(named.unit);
  kind.sentence = std::move(named.sentence);
  kind.default_note = std::move(named.default_note);
  return kind;
}

void add_data(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("data", std::move(named), std::move(kind)));
  };
  const auto data = [](auto member) { return at(&Configuration::data, member); };
  add({"train", "", "Training data: an SHD-layout HDF5 file, or an N-MNIST folder.", "required"},
      path(data(&DataSpec::train), "a path, relative to the configuration file (with --set: to where one stands)"));
  add({"test", "", "Test data of the same kind; never used to choose anything.", "none"},
      path(data(&DataSpec::test), "a path like data.train, or \"\" (none)"));
  add({"step_ms", "ms", "Length of a time step."}, step_length());
  add({"steps", "", "Time steps T of a sample; events at or beyond T * step_ms are dropped and counted."},
      whole_number(data(&DataSpec::steps), 1, kMany));
  add({"channels", "", "Channels that a recording has.", "0: what the format says (SHD layout 700, N-MNIST 2312)"},
      whole_number(data(&DataSpec::channels), 0, kMany));
  add({"classes", "", "Number of classes; a label outside is an error.", "0: the size of the last layer"},
      whole_number(data(&DataSpec::classes), 0, kMany));
  add({"channel_bin", "", "This many neighbouring channels are joined to one."},
      whole_number(data(&DataSpec::channel_bin), 1, kMany));
  add({"counts", "", "Several events of one channel in one step count as often, instead of as one spike."},
      boolean(data(&DataSpec::counts)));
  add({"validation", "",
       "What best.safetensors is chosen on: a part of train of every class, a file, or some speakers of train."},
      validation());
  add({"fold", "", "Stratified fold k of n of train is the test set, instead of data.test.", "none"}, fold());
}

void add_augmentation(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("augmentation", std::move(named), std::move(kind)));
  };
  const auto augmentation = [](auto member) { return at(&Configuration::augmentation, member); };
  add({"channel_shift", "channels",
       "Moves a training sample up or down by up to this many channels (after channel_bin); what leaves is dropped."},
      whole_number(augmentation(&AugmentationSpec::channel_shift), 0, kMany));
  add({"image_width", "channels", "Channels are images of such rows, and channel_shift moves along both axes.",
       "0: channels are a line"},
      whole_number(augmentation(&AugmentationSpec::image_width), 0, kMany));
  add({"image_height", "channels", "Rows of such an image.", "0: channels are a line"},
      whole_number(augmentation(&AugmentationSpec::image_height), 0, kMany));
  add({"channel_jitter", "channels", "Moves every event by a normal random number of this standard deviation."},
      number(augmentation(&AugmentationSpec::channel_jitter), {0.0, 1e6}));
  add({"time_shift_steps", "steps", "Moves a training sample in time by up to this many steps."},
      whole_number(augmentation(&AugmentationSpec::time_shift_steps), 0, kMany));
  add({"time_stretch", "", "Multiplies the times of a training sample by a factor drawn from [low, high]."},
      factor_range(augmentation(&AugmentationSpec::time_stretch), {0.0, 100.0, true}));
  add({"drop", "", "Probability that an event is left out."},
      number(augmentation(&AugmentationSpec::drop), {0.0, 1.0, false, true}));
  add({"mask_channels", "channels", "Silences a band of up to this many neighbouring channels."},
      whole_number(augmentation(&AugmentationSpec::mask_channels), 0, kMany));
  add({"mask_steps", "steps", "Silences up to this many steps in a row."},
      whole_number(augmentation(&AugmentationSpec::mask_steps), 0, kMany));
  add({"merge", "",
       "Probability that a training sample is merged with another of its class: each event of either is kept with "
       "probability 1/2."},
      number(augmentation(&AugmentationSpec::merge), {0.0, 1.0}));
}

void add_neuron(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("layers", std::move(named), std::move(kind)));
  };
  add({"name", "", "Names the layer in --set, reports and checkpoints.", "layer1, layer2, ... by position"},
      layer_name());
  add({"neuron", "",
       "lif, if (integrate-and-fire), cuba_lif, alif, adlif and se_adlif spike (docs/training.md has their equations); "
       "li "
       "(leaky integrator) and linear do not, and stand last, in this order."},
      choice(at(&LayerSpec::neuron), {{"lif", NeuronKind::lif},
                                      {"if", NeuronKind::integrate_and_fire},
                                      {"cuba_lif", NeuronKind::cuba_lif},
                                      {"alif", NeuronKind::alif},
                                      {"adlif", NeuronKind::adlif},
                                      {"se_adlif", NeuronKind::se_adlif},
                                      {"li", NeuronKind::leaky_integrator},
                                      {"linear", NeuronKind::linear}}));
  add({"size", "neurons", "Number of neurons; of the last layer: one per class.", "required"},
      whole_number(at(&LayerSpec::size), 1, kMany));
  add({"inputs", "",
       "Where the layer takes its spikes from: other layers by name, and \"data\"; its weights follow that order. "
       "Spikes "
       "of a later layer arrive one step later.",
       "the layer before, or the data"},
      layer_inputs());
  const Limits tau{0.0, 1e9, true}, decay{0.0, 1.0};
  add({"tau_mem_ms", "ms",
       "Membrane time constant: decay per step alpha = exp(-step_ms / tau); [low, high] draws one per neuron. Not of "
       "if "
       "and linear.",
       "200.0; adlif and se_adlif: 5 to 25 steps"},
      time_constant(at(&LayerSpec::membrane), false, tau));
  add({"decay", "", "Decay per step alpha, instead of tau_mem_ms; [low, high] draws one per neuron.",
       "from tau_mem_ms"},
      time_constant(at(&LayerSpec::membrane), true, decay));
  add({"tau_syn_ms", "ms", "Time constant of the synaptic current, likewise. cuba_lif."},
      time_constant(at(&LayerSpec::synapse), false, tau));
  add({"decay_syn", "", "Its decay per step, instead of tau_syn_ms. cuba_lif.", "from tau_syn_ms"},
      time_constant(at(&LayerSpec::synapse), true, decay));
  add({"tau_adapt_ms", "ms", "Time constant of the adaptation, likewise. alif, adlif and se_adlif.",
       "200.0; adlif and se_adlif: 30 to 120 steps"},
      time_constant(at(&LayerSpec::adaptation), false, tau));
  add({"decay_adapt", "", "Its decay per step, instead of tau_adapt_ms. alif, adlif and se_adlif.",
       "from tau_adapt_ms"},
      time_constant(at(&LayerSpec::adaptation), true, decay));
  add({"threshold", "",
       "A neuron spikes when its membrane is above this; [low, high] draws one per neuron. All that spike."},
      neuron_constant(at(&LayerSpec::threshold), {0.0, 1e6, true}));
  add({"adapt_membrane", "",
       "How the membrane drives the adaptation current (a); [low, high] draws one per neuron. adlif and se_adlif.",
       "adlif: [-1.0, 1.0]; se_adlif: [0.0, 1.0]"},
      neuron_constant(at(&LayerSpec::adapt_membrane), {-1e6, 1e6}));
  add({"adapt_spike", "",
       "How a spike drives the adaptation: b of adlif and se_adlif, beta of alif; [low, high] draws one per neuron.",
       "alif: 1.8; adlif and se_adlif: [0.0, 2.0]"},
      neuron_constant(at(&LayerSpec::adapt_spike), {-1e6, 1e6}));
  add({"adapt_gain", "", "Factor q of what drives the adaptation. se_adlif."},
      number(at(&LayerSpec::adapt_gain), {0.0, 1e6, true}));
  add({"adapt_scaled", "",
       "A spike adds 1 - decay to the adaptation, so that it is a mean of spikes, instead of 1. alif."},
      boolean(at(&LayerSpec::adapt_scaled)));
  add({"learn", "",
       "Constants that training changes, one number per neuron: they stay within [low, high] where they are drawn from "
       "it, else within what makes sense. All that spike.",
       "[]; adlif and se_adlif: [\"decay\", \"decay_adapt\", \"adapt_membrane\", \"adapt_spike\"]"},
      learned_constants());
  add({"reset", "",
       "What a spike does to the membrane: u to 0, u - threshold before the decay, the same after it, or nothing. "
       "All that spike.",
       "zero; alif and adlif: subtract"},
      choice(at(&LayerSpec::reset), {{"zero", ResetKind::zero},
                                     {"subtract", ResetKind::subtract},
                                     {"subtract_after_decay", ResetKind::subtract_after_decay},
                                     {"none", ResetKind::none}}));
  add({"reset_gradient", "",
       "Lets the gradient through the reset too, instead of holding it constant. All that spike but alif."},
      boolean(at(&LayerSpec::reset_gradient)));
  add({"input_gain", "", "Factor k of the input current."}, number(at(&LayerSpec::input_gain), {0.0, 1e6, true}));
  add({"input_scaling", "", "leak makes k = (1 - alpha) input_gain.", "none; adlif and se_adlif: leak"},
      choice(at(&LayerSpec::input_scaling), {{"none", InputScaling::none}, {"leak", InputScaling::leak}}));
  add({"bias", "", "A trained constant input per neuron, starting at 0."}, boolean(at(&LayerSpec::bias)));
  add({"recurrent", "",
       "Weights from every neuron of the layer to every neuron of it; a spike arrives one step later. All that spike."},
      boolean(at(&LayerSpec::recurrent)));
}

void add_learning(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("layers", std::move(named), std::move(kind)));
  };
  const auto surrogate = [](auto member) { return at(&LayerSpec::surrogate, member); };
  add({"surrogate", "", "Surrogate derivative of the spike, as a function of x = membrane - threshold."},
      choice(surrogate(&SurrogateSpec::kind), {{"superspike", SurrogateKind::superspike},
                                               {"triangle", SurrogateKind::triangle},
                                               {"box", SurrogateKind::box},
                                               {"quadratic", SurrogateKind::quadratic},
                                               {"arctan", SurrogateKind::arctan}}));
  add({"surrogate_beta", "", "Slope of superspike and quadratic; a of arctan.", "10.0; arctan: 2.0"},
      number(surrogate(&SurrogateSpec::beta), {0.0, 1e6, true}));
  add({"surrogate_gamma", "", "Height of the triangle."}, number(surrogate(&SurrogateSpec::gamma), {0.0, 1e6, true}));
  add({"window", "thresholds",
       "The surrogate is 0 where the membrane is not in (low, high], on top of its own support.",
       "[0.9, inf]; triangle, box and quadratic, which bring their own: [-inf, inf]"},
      window());
  add({"init", "",
       "Initial weights: to a firing rate, to unit variance (both from data), or at random by the number of inputs."},
      choice(at(&LayerSpec::init), {{"rate", InitKind::rate},
                                    {"lsuv", InitKind::lsuv},
                                    {"kaiming", InitKind::kaiming},
                                    {"uniform", InitKind::uniform},
                                    {"normal", InitKind::normal}}));
  add({"init_gain", "", "Factor of the initial weights."}, number(at(&LayerSpec::init_gain), {0.0, 1e6, true}));
  add({"init_rate", "spikes per neuron and step", "Firing rate that init = \"rate\" aims at."},
      number(at(&LayerSpec::init_rate), {0.0, 1.0, true, true}));
  add({"recurrent_init", "",
       "Initial recurrent weights: an orthogonal matrix, or normal with standard deviation 1/sqrt(size)."},
      choice(at(&LayerSpec::recurrent_init),
             {{"orthogonal", RecurrentInitKind::orthogonal}, {"normal", RecurrentInitKind::normal}}));
  add({"recurrent_gain", "", "Factor of the initial recurrent weights."},
      number(at(&LayerSpec::recurrent_gain), {0.0, 1e6}));
  add({"rate_lower", "spikes per neuron and step", "Mean rates below this are punished by rate_lower_weight."},
      number(at(&LayerSpec::rate_lower), {0.0, 1.0}));
  add({"rate_lower_weight", "", "Weight of the mean over neurons of max(0, rate_lower - rate)^2; 0 is off."},
      number(at(&LayerSpec::rate_lower_weight), {0.0, 1e9}));
  add({"rate_upper", "spikes per neuron and step", "Mean rates above this are punished by rate_upper_weight."},
      number(at(&LayerSpec::rate_upper), {0.0, 1.0}));
  add({"rate_upper_weight", "", "Weight of the mean over neurons of max(0, rate - rate_upper)^2; 0 is off."},
      number(at(&LayerSpec::rate_upper_weight), {0.0, 1e9}));
  add({"activity_target", "spikes per neuron and step",
       "Mean rate of the layer that training holds by a price of every spike in the loss; 0 is off. init_rate is this, "
       "too, "
       "unless given."},
      number(at(&LayerSpec::activity_target), {0.0, 0.5}));
  add({"rescue_active", "",
       "While a smaller fraction of the layer's neurons is active (inside the window) in a batch, the lower end of its "
       "window moves down; 0 is off. superspike and arctan."},
      number(at(&LayerSpec::rescue_active), {0.0, 1.0}));
}

void add_loss(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("loss", std::move(named), std::move(kind)));
  };
  const auto loss = [](auto member) { return at(&Configuration::loss, member); };
  add({"kind", "",
       "cross_entropy reads the membrane of a last layer that does not spike, spike_count the spikes of one that does; "
       "squared_error takes either."},
      choice(loss(&LossSpec::kind), {{"cross_entropy", LossKind::cross_entropy},
                                     {"spike_count", LossKind::spike_count},
                                     {"squared_error", LossKind::squared_error}}));
  add({"over", "",
       "What the loss looks at in membranes: every step (their mean, or their sum), the summed softmax of the steps, "
       "or "
       "the mean, maximum or last membrane."},
      choice(loss(&LossSpec::over), {{"steps", LossOver::steps},
                                     {"steps_sum", LossOver::steps_sum},
                                     {"softmax_sum", LossOver::softmax_sum},
                                     {"mean", LossOver::mean},
                                     {"max", LossOver::max},
                                     {"last", LossOver::last}}));
  add({"decision", "",
       "How a class is chosen: auto by what the loss looks at; sum of softmax, mean, maximum or last membrane, "
       "majority of steps; from spike counts: auto, sum, mean."},
      choice(loss(&LossSpec::decision), {{"auto", DecisionKind::automatic},
                                         {"sum", DecisionKind::sum},
                                         {"mean", DecisionKind::mean},
                                         {"max", DecisionKind::max},
                                         {"last", DecisionKind::last},
                                         {"majority", DecisionKind::majority}}));
  add({"label_smoothing", "", "This much of the target is spread over all classes."},
      number(loss(&LossSpec::label_smoothing), {0.0, 1.0, false, true}));
  add({"target_rate", "spikes per step",
       "squared_error: what the right class should reach (of membranes: in their own unit)."},
      number(loss(&LossSpec::target_rate), {0.0, 1.0}));
  add({"wrong_target_rate", "spikes per step", "squared_error: the same for the other classes."},
      number(loss(&LossSpec::wrong_target_rate), {0.0, 1.0}));
}

void add_optimizer(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("optimizer", std::move(named), std::move(kind)));
  };
  const auto optimizer = [](auto member) { return at(&Configuration::optimizer, member); };
  add({"kind", "", "sgd has momentum; adamw decouples the weight decay from the gradient."},
      choice(optimizer(&OptimizerSpec::kind),
             {{"adamw", OptimizerKind::adamw}, {"adam", OptimizerKind::adam}, {"sgd", OptimizerKind::sgd}}));
  add({"learning_rate", "", "Learning rate; with a schedule, its highest value."},
      number(optimizer(&OptimizerSpec::learning_rate), {0.0, 1e6}));
  add({"beta1", "", "adamw, adam: decay of the mean of the gradient."},
      number(optimizer(&OptimizerSpec::beta1), {0.0, 1.0, false, true}));
  add({"beta2", "", "adamw, adam: decay of the mean of its square."},
      number(optimizer(&OptimizerSpec::beta2), {0.0, 1.0, false, true}));
  add({"epsilon", "", "adamw, adam: added to the root of that mean."},
      number(optimizer(&OptimizerSpec::epsilon), {0.0, 1.0, true}));
  add({"momentum", "", "sgd: share of the last update in the next."},
      number(optimizer(&OptimizerSpec::momentum), {0.0, 1.0, false, true}));
  add({"weight_decay", "", "Decay of the weights (not of biases)."},
      number(optimizer(&OptimizerSpec::weight_decay), {0.0, 1e3}));
  add({"schedule", "", "How the learning rate goes on after the warm-up."},
      choice(optimizer(&OptimizerSpec::schedule), {{"constant", ScheduleKind::constant},
                                                   {"cosine", ScheduleKind::cosine},
                                                   {"one_cycle", ScheduleKind::one_cycle},
                                                   {"plateau", ScheduleKind::plateau}}));
  add({"warmup_steps", "updates", "The learning rate rises linearly over this many."},
      whole_number(optimizer(&OptimizerSpec::warmup_steps), 0, 1'000'000'000));
  add({"warmup_start", "", "Where the warm-up starts, as a fraction of learning_rate."},
      number(optimizer(&OptimizerSpec::warmup_start), {0.0, 1.0}));
  add({"final_fraction", "", "cosine, one_cycle: where the schedule ends, as a fraction of learning_rate."},
      number(optimizer(&OptimizerSpec::final_fraction), {0.0, 1.0}));
  add({"one_cycle_warmup", "", "one_cycle: fraction of all updates until the peak."},
      number(optimizer(&OptimizerSpec::one_cycle_warmup), {0.0, 1.0}));
  add({"one_cycle_start", "", "one_cycle: where it starts, as a fraction of learning_rate."},
      number(optimizer(&OptimizerSpec::one_cycle_start), {0.0, 1.0}));
  add({"plateau_factor", "", "plateau: the learning rate is multiplied by this when the loss no longer falls."},
      number(optimizer(&OptimizerSpec::plateau_factor), {0.0, 1.0, true}));
  add({"plateau_patience", "epochs",
       "plateau: epochs without a better validation (without validation: training) loss before that."},
      whole_number(optimizer(&OptimizerSpec::plateau_patience), 0, 1'000'000));
  add({"gradient_clip", "", "Highest global norm of the gradient; 0 is off."},
      number(optimizer(&OptimizerSpec::gradient_clip), {0.0, 1e9}));
}

void add_training(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("training", std::move(named), std::move(kind)));
  };
  const auto training = [](auto member) { return at(&Configuration::training, member); };
  add({"epochs", "", "Times that all training samples are seen; 0 writes the initial state and stops."},
      whole_number(training(&TrainingSpec::epochs), 0, 1'000'000));
  add({"batch_size", "samples", "Samples per batch."}, whole_number(training(&TrainingSpec::batch_size), 1, kMany));
  add({"accumulate", "batches", "Batches per update: as one batch of so many times the size, in the memory of one."},
      whole_number(training(&TrainingSpec::accumulate), 1, kMany));
  add({"bptt_steps", "steps",
       "Truncated backpropagation through time: recordings are cut into chunks of so many steps. What neurons hand on "
       "goes "
       "from chunk to chunk, gradients do not; memory is that of a chunk, time that of a second forward pass more.",
       "0: gradients go through the whole recording"},
      whole_number(training(&TrainingSpec::bptt_steps), 0, kMany));
  add({"early_stopping", "epochs",
       "Training ends after so many without a better validation; 0: never. Needs data.validation."},
      whole_number(training(&TrainingSpec::early_stopping), 0, 1'000'000));
  add({"anneal_window", "",
       "Lets the lower end of every window come from far below during the first batches, so that silent neurons "
       "learn."},
      boolean(training(&TrainingSpec::anneal_window)));
  add({"anneal_start", "thresholds", "Lower end of the windows at the first update."},
      number(training(&TrainingSpec::anneal_start), {-1e9, 1.0}));
  add({"anneal_halving", "updates", "After this many the distance to the final value is halved."},
      number(training(&TrainingSpec::anneal_halving), {0.0, 1e9, true}));
}

void add_engine(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("engine", std::move(named), std::move(kind)));
  };
  add({"mode", "", "Event lists, dense matrix products, or per layer what the activity calls for."},
      choice(at(&Configuration::engine, &EngineSpec::mode),
             {{"auto", EngineMode::automatic}, {"sparse", EngineMode::sparse}, {"dense", EngineMode::dense}}));
  add({"precision", "",
       "bf16: list passes of spiking layers read weights and deltas as bf16 copies; sums, membranes, weights and "
       "optimiser stay fp32, and so do recurrent layers."},
      choice(at(&Configuration::engine, &EngineSpec::precision),
             {{"fp32", EnginePrecision::fp32}, {"bf16", EnginePrecision::bf16}}));
  add({"threads", "", "Worker threads; the results do not depend on them.", "0: all cores that the process may use"},
      whole_number(at(&Configuration::engine, &EngineSpec::threads), 0, 1024));
}

void add_outgoing(std::vector<Setting>& table) {
  const auto add = [&](Named named, Setting kind) {
    table.push_back(entry("layers", std::move(named), std::move(kind)));
  };
  Setting budget = whole_number(at(&LayerSpec::spike_budget), 0, kMany);
  budget.allowed += " (ids, not a fraction of the layer)";
  add({"spike_budget", "ids",
       "Most ids in the list of a sample and step that goes to the next layer: spikes first, then neurons that are "
       "only "
       "active, lowest first; the rest is dropped and counted. 0 is off. All that spike, neither recurrent nor last."},
      std::move(budget));
  add({"dropout", "",
       "Probability that a spike is left out on its way to the next layer, in training; the others count 1 / (1 - "
       "dropout) there. All that spike, not last."},
      number(at(&LayerSpec::dropout), {0.0, 1.0, false, true}));
  add({"delay_steps", "steps",
       "Steps that a spike takes to the next layer; [low, high] draws a whole number per neuron. What would arrive "
       "after "
       "the last step is lost. All that spike, not last."},
      whole_range(at(&LayerSpec::delay_steps), 0, kMany));
}

std::vector<Setting> make_table() {
  std::vector<Setting> table;
  table.push_back(entry("", {"seed", "", "Seed of all random numbers: initial weights, shuffling, splits."},
                        whole_number(at(&Configuration::seed), 0, std::numeric_limits<std::int64_t>::max())));
  add_data(table);
  add_augmentation(table);
  add_neuron(table);
  add_learning(table);
  add_outgoing(table);
  add_loss(table);
  add_optimizer(table);
  add_training(table);
  add_engine(table);
  return table;
}

}  // namespace

std::span<const Setting> settings() {
  static const std::vector<Setting> table = make_table();
  return table;
}

}  // namespace spikeloom
