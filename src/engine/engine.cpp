#include "engine/engine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include <spikeloom/error.hpp>
#include "engine/passes.hpp"
#include "engine/recording.hpp"
#include "plan/mode_choice.hpp"

namespace spikeloom {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

class Engine::Implementation {
 public:
  Implementation(const NetworkSpec& spec, const Plan& a_plan, WorkerTeam& a_team)
      : network(spec),
        plan(a_plan),
        team(a_team),
        scratch(a_team.size()),
        output_stage(make_layers(), nullptr),
        rate_costs(spec.layers.size(), 0.0) {
    const std::size_t count = layers.size();
    spiking_layers = count;
    while (spiking_layers > 0 && !layers[spiking_layers - 1].spec().spiking()) --spiking_layers;
    if (count - spiking_layers > 2)
      throw InternalError("more than two layers that do not spike at the end of the network");
    if (count - spiking_layers == 2) output_stage = OutputStage(layers[count - 1], &layers[count - 2]);
    make_schedule();
    make_inputs();
    for (const LayerPlan& layer : plan.layers) {
      for (const TileShare& share : layer.shares) {
        if (share.worker < 0 || share.worker >= team.size())
          throw InternalError("the plan names a worker that the team does not have");
      }
    }
  }

  /// Layers that are worked on together: a connected part of the network.
  struct Part {
    std::vector<int> layers;
    std::optional<Loop> loop;  // none: a feed-forward layer
  };

  /// The one place where the order of a batch's work is said. Every call below ends in a barrier.
  ///
  ///   1. forward, layer by layer from the input: tiles run all steps on their own, or, in a loop (a recurrent layer,
  ///   or several that feedback joins: loop.hpp), step by step with each other (cohorts.hpp); then their lists are
  ///   merged
  ///   2. rates -> gradient of the regularisers
  ///   3. output: last layer, loss and delta, sample by sample; dLoss/ds of the layer below at its active set; the last
  ///   layer's own update
  ///   4. backward, layer by layer from the top: delta, of all tiles step by step in a loop, else per tile;
  ///   per tile dLoss/ds below (with the weights of the forward pass), weight gradients, update
  ///   5. with clipping, gradients are kept in 3 and 4, and the update follows once their norm is known
  BatchResult step(const SpikeBatch& batch, const ReadoutLoss& loss, bool train, ParameterUpdate* update,
                   double gradient_clip) {
    check(batch);
    BatchResult result;
    result.layers.resize(layers.size());
    if (batch.samples == 0) return result;
    last_samples = batch.samples;
    last_steps = batch.steps;
    const PassContext context = context_of(batch);
    for (WorkerScratch& worker : scratch) worker.update_seconds = 0.0;
    std::fill(listed.begin(), listed.end(), 0);
    ParameterUpdate* at_once = gradient_clip > 0.0 ? nullptr : update;

    auto start = Clock::now();
    const std::vector<Listing> listings(layers.size(), train ? Listing::active : Listing::spikes_only);
    for (const Part& part : schedule) forward(part, batch, listings, context, &result);
    if (train) result.regulariser = set_rate_gradients(context);
    const bool membrane_readout = spiking_layers < layers.size();
    if (membrane_readout) receive(spiking_layers, batch);
    result.forward_seconds = seconds_since(start);

    start = Clock::now();
    const UpdateRule rule{at_once, static_cast<int>(layers.size()) - 1};
    if (train) membrane_readout ? list_sources(spiking_layers, context) : list_active(spiking_layers - 1, context);
    collect(membrane_readout ? output_stage.run(input_of(spiking_layers), below(spiking_layers), batch.labels, loss,
                                                train, rule, context)
                             : count_readout(batch, loss, train, context),
            batch, result);
    collect_statistics(context, result);
    if (!train) {
      collect_budgets(result);
      result.forward_seconds += seconds_since(start);
      return result;
    }
    for (std::size_t p = schedule.size(); p-- > 0;) backward(schedule[p], at_once, context, result);
    collect_budgets(result);
    result.backward_seconds = seconds_since(start);
    for (const WorkerScratch& worker : scratch)
      result.update_seconds += worker.update_seconds / static_cast<double>(team.size());
    result.backward_seconds -= result.update_seconds;
    if (update && !at_once) {
      start = Clock::now();
      clip_and_update(*update, gradient_clip);
      result.update_seconds += seconds_since(start);
    }
    if (at_once) renew_constants();
    return result;
  }

  /// After an update of what they are made from.
  void renew_constants() {
    for (LayerState& layer : layers) {
      if (layer.learns_constants()) layer.make_constants();
    }
  }

  PassContext context_of(const SpikeBatch& batch) {
    return {batch.samples, batch.steps, &team, &scratch, &shared, &plan};
  }

  /// Collects the spikes that reach layer l.
  void receive(std::size_t l, const SpikeBatch& batch) {
    inputs[l].join_spikes(data_of(batch), batch.samples, batch.steps, team);
  }
  static SpikeRows data_of(const SpikeBatch& batch) { return {batch.offsets.data(), batch.ids.data(), batch.neurons}; }
  const SpikeRows& input_of(std::size_t l) const { return inputs[l].spikes(); }
  /// Who wants a gradient of layer l; null: nobody.
  InputSources* below(std::size_t l) { return inputs[l].layers().empty() ? nullptr : &inputs[l]; }

  static double busy_fraction(std::size_t events, std::size_t rows, int neurons) {
    return static_cast<double>(events) / (static_cast<double>(rows) * neurons);
  }

  /// Forward pass of one part, whose `listings` are by layer. Layer `by_lists` is not computed by products.
  void forward(const Part& part, const SpikeBatch& batch, const std::vector<Listing>& listings,
               const PassContext& context, BatchResult* result, int by_lists = -1) {
    for (const int l : part.layers)
      layers[l].outgoing.begin(context.samples, context.steps, listings[l] == Listing::active ? &dropout : nullptr);
    std::vector<LoopInput> given;
    for (const int l : part.layers) {
      receive(l, batch);
      const SpikeRows& input = input_of(l);
      const double busy = busy_fraction(input.offsets[context.rows()], context.rows(), input.neurons);
      given.push_back({input, listings[l], l != by_lists && choose_dense(plan.mode, busy, kForwardDenseFrom)});
      if (result) result->layers[l].forward_dense = given.back().dense;
    }
    if (part.loop) {
      forward_loop(*part.loop, given, context);
    } else {
      const LoopInput& only = given.front();
      (only.dense ? forward_dense : forward_sparse)(layers[part.layers.front()], only.spikes, only.listing, context);
    }
    for (const int l : part.layers) {
      if (layers[l].outgoing.changes()) layers[l].outgoing.send_spikes(layers[l].spikes, team);
    }
    for (const int l : part.layers) inputs[l].join_with_loop(data_of(batch), batch.samples, batch.steps, team);
  }

  void backward(const Part& part, ParameterUpdate* update, const PassContext& context, BatchResult& result) {
    std::vector<LoopBackward> members;
    for (const int l : part.layers) {
      if (part.loop) {
        list_active(l, context);  // its own, for the delta recursion
        if (!heard_outside[l]) silence_outside(layers[l]);
      } else {
        release_active(l);
      }
    }
    for (const int l : part.layers) {
      list_sources(l, context);
      const SpikeRows& input = input_of(l);
      InputSources* sources = below(l);
      double busy = busy_fraction(input.offsets[context.rows()], context.rows(), input.neurons);
      if (sources) busy = (busy + busy_fraction(sources->active().ids.size(), context.rows(), input.neurons)) / 2.0;
      members.push_back({input, sources, {update, l}, choose_dense(plan.mode, busy, kBackwardDenseFrom)});
      result.layers[l].backward_dense = members.back().dense;
    }
    if (part.loop) {
      backward_loop(*part.loop, members, context);
      for (const int l : part.layers) release_active(l);
      return;
    }
    const LoopBackward& only = members.front();
    LayerState& layer = layers[part.layers.front()];
    if (only.dense) {
      backward_dense(layer, only.spikes, only.below, only.rule, context);
    } else {
      backward_sparse(layer, only.spikes, only.below, {}, only.rule, context);
    }
  }

  /// For a layer whose spikes go to its loop alone.
  static void silence_outside(LayerState& layer) {
    prepare_spike_gradient(layer);
    for (TileTrace& trace : layer.traces) std::fill(trace.spike_gradient.begin(), trace.spike_gradient.end(), 0.0f);
  }

  /// A layer's active set is listed from when the first layer that it sends to needs it until its own backward pass:
  /// in a chain one layer's at a time, or two's next to a recurrent layer; all of a loop at once. They take turns with
  /// the storage.
  void list_active(std::size_t l, const PassContext& context) {
    LayerState& layer = layers[l];
    if (listed[l]) return;
    listed[l] = 1;
    if (!spare_active.empty()) {
      layer.active = std::move(spare_active.back());
      spare_active.pop_back();
    }
    merge_active(layer, context, layer.active);
    if (layer.outgoing.changes()) layer.outgoing.send_active(layer.spikes, layer.active, team);
  }
  void release_active(std::size_t l) { spare_active.push_back(std::move(layers[l].active)); }
  /// Those of the layers that layer l takes its spikes from.
  void list_sources(std::size_t l, const PassContext& context) {
    for (const LayerState* source : inputs[l].layers()) list_active(source - layers.data(), context);
    inputs[l].join_active(context.samples, context.steps, team);
  }

  void check(const SpikeBatch& batch) const {
    if (batch.neurons != network.channels)
      throw InternalError("the batch has another number of channels than the network");
    if (batch.labels.size() != static_cast<std::size_t>(batch.samples))
      throw InternalError("the batch has another number of labels than of samples");
  }

  /// A spiking last layer: spike counts are what the loss looks at.
  std::vector<SampleResult> count_readout(const SpikeBatch& batch, const ReadoutLoss& loss, bool train,
                                          const PassContext& context) {
    LayerState& last = layers.back();
    std::vector<SampleResult> results(batch.samples);
    if (train) prepare_spike_gradient(last);
    team.for_each(batch.samples, [&](std::size_t sample, int worker) {
      std::vector<std::uint32_t> counts(last.size(), 0);
      std::vector<float> gradient(last.size(), 0.0f);
      const std::size_t row = sample * context.steps;
      for (std::uint32_t e = last.spikes.offsets[row]; e < last.spikes.offsets[row + context.steps]; ++e)
        ++counts[last.spikes.ids[e]];
      results[sample] = loss.evaluate_counts(counts.data(), train ? gradient.data() : nullptr, context.steps,
                                             last.size(), batch.labels[sample], 1.0 / batch.samples);
      if (!train) return;
      const std::uint32_t begin = last.active.offsets[row], end = last.active.offsets[row + context.steps];
      WorkerScratch& own = scratch[worker];
      own.partials.reserve_discard(end - begin);
      for (std::uint32_t e = begin; e < end; ++e) own.partials[e - begin] = gradient[last.active.ids[e]];
      distribute_to_tiles(last, static_cast<int>(sample), context.steps, own.partials.data(), own);
    });
    return results;
  }

  void collect(const std::vector<SampleResult>& samples, const SpikeBatch& batch, BatchResult& result) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      result.loss += samples[i].loss;
      result.losses.push_back(samples[i].loss);
      result.decisions.push_back(samples[i].decision);
      result.undecided_samples.push_back(samples[i].undecided);
      result.correct += samples[i].decision == batch.labels[i];
      result.undecided += samples[i].undecided;
    }
  }

  void collect_statistics(const PassContext& context, BatchResult& result) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      LayerStatistics& statistics = result.layers[l];
      const LayerState& layer = layers[l];
      const double cells = static_cast<double>(context.rows()) * layer.size();
      const bool dense_input = l > spiking_layers;
      const std::size_t events = dense_input ? context.rows() * layer.inputs() : input_of(l).offsets[context.rows()];
      statistics.synaptic_operations = events * layer.size();
      if (!dense_input) result.saved_state_bytes += inputs[l].bytes();
      if (l >= spiking_layers) continue;
      statistics.spikes = layer.spikes.ids.size();
      if (layer.recurrent()) statistics.synaptic_operations += statistics.spikes * layer.size();
      for (const TileTrace& trace : layer.traces) statistics.active += trace.active_start.back();
      statistics.activity = static_cast<double>(statistics.spikes) / cells;
      statistics.active_fraction = static_cast<double>(statistics.active) / cells;
      for (const TileTrace& trace : layer.traces) {
        statistics.spike_counts.insert(statistics.spike_counts.end(), trace.spike_counts.begin(),
                                       trace.spike_counts.end());
        result.saved_state_bytes += trace.bytes();
      }
      statistics.spike_counts.resize(layer.size());
      result.saved_state_bytes += layer.spikes.bytes() + layer.outgoing.bytes();
    }
    if (spiking_layers < layers.size()) result.saved_state_bytes += output_stage.saved_bytes(context);
  }

  /// What budgets dropped, once the active sets have gone out, too.
  void collect_budgets(BatchResult& result) const {
    for (std::size_t l = 0; l < spiking_layers; ++l) {
      if (layers[l].spec().spike_budget > 0) result.layers[l].budget = layers[l].outgoing.budget();
    }
  }

  /// Sets every neuron's dRegulariser/ds and returns the regularisers' sum: weight * mean_j max(0, lower - r_j)^2,
  /// weight * mean_j max(0, r_j - upper)^2, and cost * mean_j r_j.
  double set_rate_gradients(const PassContext& context) {
    double total = 0.0;
    for (std::size_t l = 0; l < spiking_layers; ++l) {
      LayerState& layer = layers[l];
      const LayerSpec& spec = layer.spec();
      const double rows = static_cast<double>(context.rows());
      for (int neuron = 0; neuron < layer.size(); ++neuron) {
        const int tile = neuron / layer.width(), column = neuron % layer.width();
        const double rate = layer.traces[tile].spike_counts[column] / rows;
        const double below = std::max(0.0, spec.rate_lower - rate), above = std::max(0.0, rate - spec.rate_upper);
        total +=
            (spec.rate_lower_weight * below * below + spec.rate_upper_weight * above * above + rate_costs[l] * rate) /
            layer.size();
        layer.rate_gradient(tile)[column] = static_cast<float>(
            (2.0 * (spec.rate_upper_weight * above - spec.rate_lower_weight * below) + rate_costs[l]) /
            (layer.size() * rows));
      }
    }
    return total;
  }

  /// A tile's kept gradients that belong to parameters, and their lengths.
  static std::vector<std::pair<float*, std::size_t>> gradients_of(LayerState& layer, int tile) {
    std::vector<std::pair<float*, std::size_t>> gradients;
    float* const of_kind[] = {layer.kept_gradient(tile), layer.kept_recurrent_gradient(tile),
                              layer.bias_gradient(tile)};
    for (const ParameterKind kind : kParameterKinds) {
      if (!has_parameter(layer.spec(), kind)) continue;
      const bool of_neurons = kind >= ParameterKind::decay;
      gradients.emplace_back(of_neurons ? layer.neuron_gradient(kind, tile) : of_kind[static_cast<int>(kind)],
                             layer.block_floats(kind));
    }
    return gradients;
  }

  /// The norm over all parameters is summed in double, tile by tile in order; then every tile is scaled and updated by
  /// its owner.
  void clip_and_update(ParameterUpdate& update, double gradient_clip) {
    double sum_of_squares = 0.0;
    for (LayerState& layer : layers) {
      std::vector<double> parts(layer.tiles());
      team.for_each(layer.tiles(), [&](std::size_t t, int) {
        const int tile = static_cast<int>(t);
        for (const auto& [gradient, count] : gradients_of(layer, tile)) {
          for (std::size_t i = 0; i < count; ++i) parts[t] += static_cast<double>(gradient[i]) * gradient[i];
        }
      });
      for (const double part : parts) sum_of_squares += part;
    }
    const double norm = std::sqrt(sum_of_squares);
    const float scale = norm > gradient_clip ? static_cast<float>(gradient_clip / norm) : 1.0f;
    update_all(update, scale);
  }

  /// Every tile's kept gradients are scaled and applied by its owner.
  void update_all(ParameterUpdate& update, float scale = 1.0f) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      LayerState& layer = layers[l];
      kept_gradients(layer, 0);  // allocated before the workers need it
      team.run([&](int worker) {
        for (int tile = 0; tile < layer.tiles(); ++tile) {
          if (layer.owner(tile) != worker) continue;
          for (const auto& [gradient, count] : gradients_of(layer, tile)) scale_by(scale, gradient, count);
          update_tile(layer, tile, kept_gradients(layer, tile), {&update, static_cast<int>(l)}, scratch[worker]);
        }
      });
    }
    renew_constants();
  }

  void export_gradient(Parameters& gradient) {
    gradient.layers.clear();
    for (LayerState& layer : layers) {
      LayerParameters& out = gradient.layers.emplace_back();
      for (std::size_t i = 0; const ParameterKind kind : kParameterKinds) {
        if (!has_parameter(layer.spec(), kind)) continue;
        std::vector<const float*> blocks;
        for (int tile = 0; tile < layer.tiles(); ++tile) blocks.push_back(gradients_of(layer, tile)[i].first);
        out.of(kind) = layer.to_canonical(kind, blocks);
        ++i;
      }
    }
  }

  /// Layers up to `which` forward, as far as they are needed for what is asked of it.
  LayerRecord record(const SpikeBatch& batch, int which, bool spikes, bool membrane, bool input_current) {
    check(batch);
    LayerRecord result;
    LayerState& layer = layers.at(which);
    const PassContext context = context_of(batch);
    const bool list_all = membrane && !input_current && layer.spec().spiking();
    std::vector<Listing> listings(layers.size(), Listing::spikes_only);
    for (const Part& part : schedule) {
      const bool last = std::find(part.layers.begin(), part.layers.end(), which) != part.layers.end();
      if (last && list_all) listings[which] = Listing::everything;
      // What reaches a layer that feedback joins with others shows only once they have all run.
      if (!last || spikes || list_all || part.layers.size() > 1) {
        forward(part, batch, listings, context, nullptr, which);
      } else {
        receive(which, batch);
      }
      if (last) break;
    }
    const std::size_t fed_by_spikes = std::min<std::size_t>(which, spiking_layers);
    if (!layer.spec().spiking()) receive(fed_by_spikes, batch);
    if (!layer.spec().spiking()) {
      if (spikes) throw InternalError("layer " + layer.spec().name + " does not spike");
      const SpikeRows input = input_of(fed_by_spikes);
      const bool on_spikes = static_cast<std::size_t>(which) == spiking_layers;
      if (membrane)
        result.membrane = on_spikes ? forward_membranes(layer, input, input_current, context)
                                    : linear_membranes(output_stage, layer, input, batch, context);
      return result;
    }
    if (spikes) result.spikes = recorded_spikes(layer, batch);
    if (list_all) result.membrane = recorded_membranes(layer, context);
    if (membrane && input_current) result.membrane = forward_membranes(layer, input_of(which), true, context);
    return result;
  }

  const NetworkSpec network;
  const Plan plan;
  WorkerTeam& team;
  std::vector<LayerState> layers;
  std::vector<Part> schedule;        // of the layers that spike, in the order of the forward pass
  std::vector<InputSources> inputs;  // of each layer that is fed by spikes
  std::vector<bool> heard_outside;   // of each layer: it is an input of one outside of its part, or the last layer
  std::size_t spiking_layers = 0;    // the first ones
  std::vector<WorkerScratch> scratch;
  SharedScratch shared;
  OutputStage output_stage;
  std::vector<SpikeLists> spare_active;
  std::vector<std::uint8_t> listed;  // per layer: its active set has been listed in this batch
  std::vector<double> rate_costs;    // per layer
  DropoutDraw dropout;
  int last_samples = 0;  // of the last batch
  int last_steps = 0;

 private:
  LayerState& make_layers() {
    if (plan.layers.size() != network.layers.size()) throw InternalError("the plan is of another network");
    layers.reserve(network.layers.size());
    for (std::size_t l = 0; l < network.layers.size(); ++l)
      layers.emplace_back(network.layers[l], network.inputs_of(l), plan.layers[l]);
    return layers.back();
  }

  void make_schedule() {
    for (const std::vector<int>& part : network.connected_parts()) {
      if (!layers[part.front()].spec().spiking()) continue;
      Part& added = schedule.emplace_back();
      added.layers = part;
      if (part.size() > 1 || layers[part.front()].recurrent()) added.loop.emplace(network, part, layers);
    }
  }

  void make_inputs() {
    listed.assign(layers.size(), 0);
    heard_outside.assign(layers.size(), false);
    heard_outside.back() = true;
    const std::size_t fed_by_spikes = std::min(spiking_layers + 1, layers.size());
    std::vector<std::vector<InputSources::Source>> sources(fed_by_spikes);
    // From the last layer of the forward pass back, as gradients go: whoever comes first does not add.
    const auto visit = [&](int l, const std::vector<int>& part) {
      for (const int source : network.sources_of(l)) {
        const bool inner = std::find(part.begin(), part.end(), source) != part.end();
        const bool given = source >= 0 && !inner && heard_outside[source];
        sources[l].push_back({source < 0 ? nullptr : &layers[source], network.size_of(source), given, inner,
                              NetworkSpec::lag_of(source, l)});
        if (source >= 0 && !inner) heard_outside[source] = true;
      }
    };
    if (fed_by_spikes > spiking_layers) visit(static_cast<int>(spiking_layers), {});
    for (std::size_t p = schedule.size(); p-- > 0;) {
      const std::vector<int>& part = schedule[p].layers;
      for (std::size_t m = part.size(); m-- > 0;) visit(part[m], part);
    }
    for (std::vector<InputSources::Source>& of_layer : sources) inputs.emplace_back(std::move(of_layer));
  }
};

Engine::Engine(const NetworkSpec& network, const Plan& plan, WorkerTeam& team)
    : implementation_(std::make_unique<Implementation>(network, plan, team)) {}
Engine::~Engine() = default;

const NetworkSpec& Engine::network() const { return implementation_->network; }
WorkerTeam& Engine::team() const { return implementation_->team; }

void Engine::import_parameters(const Parameters& parameters) {
  auto& layers = implementation_->layers;
  if (parameters.layers.size() != layers.size()) throw InternalError("parameters of another network");
  for (std::size_t l = 0; l < layers.size(); ++l) layers[l].import_parameters(parameters.layers[l]);
}

Parameters Engine::export_parameters() const {
  Parameters parameters;
  for (const LayerState& layer : implementation_->layers) parameters.layers.push_back(layer.export_parameters());
  return parameters;
}

std::size_t Engine::block_size(BlockId block) const {
  const LayerState& layer = implementation_->layers.at(block.layer);
  return layer.block_floats(block.parameter);
}

std::vector<BlockId> Engine::blocks() const {
  std::vector<BlockId> blocks;
  for (int l = 0; l < static_cast<int>(implementation_->layers.size()); ++l) {
    const LayerState& layer = implementation_->layers[l];
    for (int tile = 0; tile < layer.tiles(); ++tile) {
      for (const ParameterKind kind : kParameterKinds) {
        if (has_parameter(layer.spec(), kind)) blocks.push_back({l, tile, kind});
      }
    }
  }
  return blocks;
}

std::vector<float> Engine::gather_canonical(int layer, ParameterKind parameter,
                                            const std::vector<const float*>& blocks) const {
  return implementation_->layers.at(layer).to_canonical(parameter, blocks);
}

void Engine::scatter_canonical(int layer, ParameterKind parameter, std::span<const float> canonical,
                               const std::vector<float*>& blocks) const {
  implementation_->layers.at(layer).from_canonical(parameter, canonical, blocks);
}

void Engine::set_window_low(double units_of_threshold) {
  for (LayerState& layer : implementation_->layers) {
    if (layer.spec().spiking()) layer.set_window_low(units_of_threshold);
  }
}

void Engine::set_window_low(int layer, double units_of_threshold) {
  implementation_->layers.at(layer).set_window_low(units_of_threshold);
}

void Engine::set_rate_cost(int layer, double cost) { implementation_->rate_costs.at(layer) = cost; }

void Engine::set_dropout(const DropoutDraw& draw) { implementation_->dropout = draw; }

BatchResult Engine::evaluate(const SpikeBatch& batch, const ReadoutLoss& loss) {
  return implementation_->step(batch, loss, false, nullptr, 0.0);
}

LayerRecord Engine::record(const SpikeBatch& batch, int layer, bool spikes, bool membrane, bool input_current) {
  return implementation_->record(batch, layer, spikes, membrane, input_current);
}

BatchResult Engine::train_step(const SpikeBatch& batch, const ReadoutLoss& loss, ParameterUpdate& update,
                               double gradient_clip) {
  return implementation_->step(batch, loss, true, &update, gradient_clip);
}

void Engine::update_parameters(ParameterUpdate& update) { implementation_->update_all(update); }

BatchResult Engine::gradient(const SpikeBatch& batch, const ReadoutLoss& loss, Parameters& gradient) {
  BatchResult result = implementation_->step(batch, loss, true, nullptr, 0.0);
  implementation_->export_gradient(gradient);
  return result;
}

const SpikeLists& Engine::spikes(int layer) const { return implementation_->layers.at(layer).spikes; }

SpikeRows Engine::sent_spikes(int layer) const { return implementation_->layers.at(layer).sent_spikes(); }

SpikeRows Engine::received_spikes(int layer) const { return implementation_->inputs.at(layer).spikes(); }

SpikeLists Engine::active(int layer) {
  Implementation& self = *implementation_;
  SpikeLists lists;
  merge_active(self.layers.at(layer),
               {self.last_samples, self.last_steps, &self.team, &self.scratch, &self.shared, &self.plan}, lists);
  return lists;
}

}  // namespace spikeloom
