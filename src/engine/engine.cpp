#include "engine/engine.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <spikeloom/error.hpp>
#include "engine/batch_statistics.hpp"
#include "engine/kept_gradients.hpp"
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
        count_stage(layers.back()),
        kept(layers, team, scratch),
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
  ///   merged; last the output of the last layer
  ///   2. rates -> gradient of the regularisers; output -> loss, and its gradient
  ///   3. output: delta of the last layer, sample by sample; dLoss/ds of the layer below at its active set; the last
  ///   layer's own update
  ///   4. backward, layer by layer from the top: delta, of all tiles step by step in a loop, else per tile;
  ///   per tile dLoss/ds below (with the weights of the forward pass), weight gradients, update
  ///   5. with clipping, gradients are kept in 3 and 4, and the update follows once their norm is known
  ///
  /// Where gradients are truncated, recordings go through 1 chunk by chunk, and what neurons hand on is carried from
  /// each to the next. Only outputs and rates are kept of that. After 2 each chunk, in the same order, goes through 1
  /// once more, then through 3 and 4; gradients are kept and added up, and the update follows the last.
  BatchResult step(const SpikeBatch& batch, const ReadoutLoss& loss, bool train, ParameterUpdate* update,
                   double gradient_clip) {
    check(batch);
    BatchResult result;
    result.layers.resize(layers.size());
    if (batch.samples == 0) return result;
    const std::vector<StepRange> chunks = chunks_of(batch.steps);
    const bool whole = chunks.size() == 1;
    for (WorkerScratch& worker : scratch) worker.update_seconds = 0.0;
    ParameterUpdate* at_once = gradient_clip > 0.0 || !whole ? nullptr : update;
    const DropoutDraw* draw = train ? &dropout : nullptr;

    begin_recordings(batch.samples, whole);
    for (const StepRange& chunk : chunks) {
      const PassContext context = begin_chunk(batch, chunk);
      forward_chunk(context, train && whole ? Listing::active : Listing::spikes_only, draw, result);
      const auto start = Clock::now();
      membrane_readout() ? output_stage.forward(input_of(spiking_layers), context) : count_stage.forward(context);
      if (!train) collect_budgets(result);
      if (!whole) carry_on(context);
      result.forward_seconds += seconds_since(start);
    }
    if (train) result.regulariser = set_rate_gradients(result, batch.rows());
    auto start = Clock::now();
    const PassContext& recording = last_context;
    count_decisions(membrane_readout() ? output_stage.evaluate(batch.labels, loss, train, recording)
                                       : count_stage.evaluate(batch.labels, loss, train, recording),
                    batch.labels, result);
    (train ? result.backward_seconds : result.forward_seconds) += seconds_since(start);
    if (train && !whole) {
      result.layers.assign(layers.size(), {});
      begin_recordings(batch.samples, whole);
    }
    for (std::size_t c = 0; train && c < chunks.size(); ++c) {
      const PassContext context = whole ? last_context : begin_chunk(batch, chunks[c]);
      if (!whole) forward_chunk(context, Listing::active, draw, result);
      start = Clock::now();
      backward_chunk(context, at_once, result);
      if (!whole) {
        kept.add_up(c == 0, c + 1 == chunks.size());
        carry_on(context);
      }
      result.backward_seconds += seconds_since(start);
    }
    for (std::size_t l = 0; l < layers.size(); ++l) set_means(batch.rows(), layers[l].size(), result.layers[l]);
    if (!train) return result;
    for (const WorkerScratch& worker : scratch)
      result.update_seconds += worker.update_seconds / static_cast<double>(team.size());
    result.backward_seconds -= result.update_seconds;
    if (update && !at_once) {
      start = Clock::now();
      kept.clip_and_update(*update, gradient_clip);
      result.update_seconds += seconds_since(start);
    }
    if (update) renew_constants();
    return result;
  }

  /// The whole recording, or as many steps at a time as gradients go back.
  std::vector<StepRange> chunks_of(int steps) const {
    if (plan.bptt_steps == 0) return {{0, steps}};
    std::vector<StepRange> chunks;
    for (int first = 0; first < steps; first += plan.bptt_steps)
      chunks.push_back({first, std::min(first + plan.bptt_steps, steps)});
    return chunks;
  }

  void begin_recordings(int samples, bool whole) {
    for (LayerState& layer : layers)
      layer.carried.begin(samples, whole ? 0 : layer.tiles(), layer.state_floats(), layer.learns_constants());
  }
  /// The chunk's data become what passes see.
  PassContext begin_chunk(const SpikeBatch& batch, StepRange steps) {
    if (steps.size() == batch.steps) {
      data = {batch.offsets.data(), batch.ids.data(), batch.neurons};
    } else {
      slice_steps(batch, steps.first, steps.size(), chunk_data);
      data = {chunk_data.offsets.data(), chunk_data.ids.data(), chunk_data.neurons};
    }
    return last_context = {batch.samples, steps.size(), &team, &scratch, &shared, &plan, steps.first, batch.steps};
  }
  void carry_on(LayerState& layer, const PassContext& context) {
    layer.carried.go_on(layer.recurrent() ? &layer.spikes : nullptr, context.steps);
  }
  void carry_on(const PassContext& context) {
    for (LayerState& layer : layers) carry_on(layer, context);
  }

  /// Up to what reaches the layers that do not spike.
  void forward_chunk(const PassContext& context, Listing listing, const DropoutDraw* draw, BatchResult& result) {
    const auto start = Clock::now();
    std::fill(listed.begin(), listed.end(), 0);
    const std::vector<Listing> listings(layers.size(), listing);
    for (const Part& part : schedule) forward(part, listings, draw, context, &result);
    if (membrane_readout()) receive(spiking_layers, context);
    collect_statistics(context, result);
    result.forward_seconds += seconds_since(start);
  }

  void backward_chunk(const PassContext& context, ParameterUpdate* at_once, BatchResult& result) {
    if (membrane_readout()) {
      list_sources(spiking_layers, context);
      output_stage.backward(input_of(spiking_layers), below(spiking_layers),
                            {at_once, static_cast<int>(layers.size()) - 1}, context);
    } else {
      list_active(spiking_layers - 1, context);
      count_stage.backward(context);
    }
    for (std::size_t p = schedule.size(); p-- > 0;) backward(schedule[p], at_once, context, result);
    collect_budgets(result);
  }

  bool membrane_readout() const { return spiking_layers < layers.size(); }

  /// After an update of what they are made from.
  void renew_constants() {
    for (LayerState& layer : layers) {
      if (layer.learns_constants()) layer.make_constants();
    }
  }

  /// Collects the spikes that reach layer l.
  void receive(std::size_t l, const PassContext& context) {
    inputs[l].join_spikes(data, context.samples, context.steps, team);
  }
  const SpikeRows& input_of(std::size_t l) const { return inputs[l].spikes(); }
  /// Who wants a gradient of layer l; null: nobody.
  InputSources* below(std::size_t l) { return inputs[l].layers().empty() ? nullptr : &inputs[l]; }

  static double busy_fraction(std::size_t events, std::size_t rows, int neurons) {
    return static_cast<double>(events) / (static_cast<double>(rows) * neurons);
  }

  /// Forward pass of one part, whose `listings` are by layer. Layer `by_lists` is not computed by products.
  void forward(const Part& part, const std::vector<Listing>& listings, const DropoutDraw* draw,
               const PassContext& context, BatchResult* result, int by_lists = -1) {
    for (const int l : part.layers)
      layers[l].outgoing.begin(context.samples, context.chunk(), context.recording_steps, draw);
    std::vector<LoopInput> given;
    for (const int l : part.layers) {
      receive(l, context);
      const SpikeRows& input = input_of(l);
      const double busy = busy_fraction(input.offsets[context.rows()], context.rows(), input.neurons);
      given.push_back({input, listings[l], l != by_lists && choose_dense(plan.mode, busy, kForwardDenseFrom)});
      if (result) result->layers[l].forward_dense |= given.back().dense;
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
    for (const int l : part.layers) inputs[l].join_with_loop(data, context.samples, context.steps, team);
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
      result.layers[l].backward_dense |= members.back().dense;
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

  /// Counts what the forward pass of a chunk lists.
  void collect_statistics(const PassContext& context, BatchResult& result) const {
    std::uint64_t saved = membrane_readout() ? output_stage.saved_bytes(context) : 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const bool dense_input = l > spiking_layers;
      const std::size_t events =
          dense_input ? context.rows() * layers[l].inputs() : input_of(l).offsets[context.rows()];
      result.layers[l].synaptic_operations += events * layers[l].size();
      if (!dense_input) saved += inputs[l].bytes();
      saved += layers[l].carried.bytes();
      if (l < spiking_layers) saved += count_spikes(layers[l], result.layers[l]);
    }
    result.saved_state_bytes = std::max(result.saved_state_bytes, saved);
  }

  /// What budgets dropped, once the active sets have gone out, too.
  void collect_budgets(BatchResult& result) const {
    for (std::size_t l = 0; l < spiking_layers; ++l) {
      if (layers[l].spec().spike_budget > 0) result.layers[l].budget += layers[l].outgoing.budget();
    }
  }

  /// Sets every neuron's dRegulariser/ds and returns the regularisers' sum: weight * mean_j max(0, lower - r_j)^2,
  /// weight * mean_j max(0, r_j - upper)^2, and cost * mean_j r_j.
  double set_rate_gradients(const BatchResult& result, std::size_t recorded_rows) {
    double total = 0.0;
    for (std::size_t l = 0; l < spiking_layers; ++l) {
      LayerState& layer = layers[l];
      const LayerSpec& spec = layer.spec();
      const auto rows = static_cast<double>(recorded_rows);
      for (int neuron = 0; neuron < layer.size(); ++neuron) {
        const int tile = neuron / layer.width(), column = neuron % layer.width();
        const double rate = result.layers[l].spike_counts[neuron] / rows;
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

  LayerCounts count(const SpikeBatch& batch, std::size_t which) {
    check(batch);
    LayerCounts result;
    LayerState& layer = layers.at(which);
    result.received.assign(layer.inputs(), 0);
    const std::vector<Listing> listings(layers.size(), Listing::spikes_only);
    const std::vector<StepRange> chunks = chunks_of(batch.steps);
    begin_recordings(batch.samples, chunks.size() == 1);
    for (const StepRange& chunk : chunks) {
      const PassContext context = begin_chunk(batch, chunk);
      for (const Part& part : schedule) {
        forward(part, listings, nullptr, context, nullptr, static_cast<int>(which));
        for (const int l : part.layers) {
          if (chunks.size() > 1) carry_on(layers[l], context);
        }
        if (std::find(part.layers.begin(), part.layers.end(), which) != part.layers.end()) break;
      }
      const SpikeRows input = input_of(which);
      for (std::uint32_t e = 0; e < input.offsets[context.rows()]; ++e) ++result.received[input.ids[e]];
      result.activity += static_cast<double>(layer.spikes.ids.size());
    }
    result.activity /= static_cast<double>(batch.rows()) * layer.size();
    return result;
  }

  /// Layers up to `which` forward, as far as they are needed for what is asked of it.
  LayerRecord record(const SpikeBatch& batch, int which, bool spikes, bool membrane, bool input_current) {
    check(batch);
    LayerRecord result;
    LayerState& layer = layers.at(which);
    begin_recordings(batch.samples, true);
    const PassContext context = begin_chunk(batch, {0, batch.steps});
    const bool list_all = membrane && !input_current && layer.spec().spiking();
    std::vector<Listing> listings(layers.size(), Listing::spikes_only);
    for (const Part& part : schedule) {
      const bool last = std::find(part.layers.begin(), part.layers.end(), which) != part.layers.end();
      if (last && list_all) listings[which] = Listing::everything;
      // What reaches a layer that feedback joins with others shows only once they have all run.
      if (!last || spikes || list_all || part.layers.size() > 1) {
        forward(part, listings, nullptr, context, nullptr, which);
      } else {
        receive(which, context);
      }
      if (last) break;
    }
    const std::size_t fed_by_spikes = std::min<std::size_t>(which, spiking_layers);
    if (!layer.spec().spiking()) receive(fed_by_spikes, context);
    if (!layer.spec().spiking()) {
      if (spikes) throw InternalError("layer " + layer.spec().name + " does not spike");
      const SpikeRows input = input_of(fed_by_spikes);
      const bool on_spikes = static_cast<std::size_t>(which) == spiking_layers;
      if (membrane)
        result.membrane = on_spikes ? forward_membranes(layer, input, input_current, context)
                                    : linear_membranes(output_stage, layer, input, context);
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
  CountStage count_stage;
  KeptGradients kept;
  std::vector<SpikeLists> spare_active;
  std::vector<std::uint8_t> listed;  // per layer: its active set has been listed in this batch
  std::vector<double> rate_costs;    // per layer
  DropoutDraw dropout;
  SpikeRows data;            // of the chunk at hand
  SpikeBatch chunk_data;     // where it is not the whole batch
  PassContext last_context;  // of the last chunk

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
        if (NetworkSpec::lag_of(source, l) > 0 && plan.bptt_steps > 0 && plan.bptt_steps < network.steps)
          throw InternalError("what feedback has under way is not carried from chunk to chunk");
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

LayerCounts Engine::count(const SpikeBatch& batch, int layer) { return implementation_->count(batch, layer); }

LayerRecord Engine::record(const SpikeBatch& batch, int layer, bool spikes, bool membrane, bool input_current) {
  return implementation_->record(batch, layer, spikes, membrane, input_current);
}

BatchResult Engine::train_step(const SpikeBatch& batch, const ReadoutLoss& loss, ParameterUpdate& update,
                               double gradient_clip) {
  return implementation_->step(batch, loss, true, &update, gradient_clip);
}

void Engine::update_parameters(ParameterUpdate& update) {
  implementation_->kept.update_all(update);
  implementation_->renew_constants();
}

BatchResult Engine::gradient(const SpikeBatch& batch, const ReadoutLoss& loss, Parameters& gradient) {
  BatchResult result = implementation_->step(batch, loss, true, nullptr, 0.0);
  implementation_->kept.write_to(gradient);
  return result;
}

const SpikeLists& Engine::spikes(int layer) const { return implementation_->layers.at(layer).spikes; }

SpikeRows Engine::sent_spikes(int layer) const { return implementation_->layers.at(layer).sent_spikes(); }

SpikeLists Engine::active(int layer) {
  Implementation& self = *implementation_;
  SpikeLists lists;
  merge_active(self.layers.at(layer), self.last_context, lists);
  return lists;
}

}  // namespace spikeloom
