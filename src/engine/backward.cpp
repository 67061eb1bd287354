#include <algorithm>
#include <bit>
#include <chrono>
#include <type_traits>

#include "engine/passes.hpp"

namespace spikeloom {
namespace {

/// The leaky integrator below a linear layer: its membranes are computed again rather than kept, for they are dense.
/// Writes k delta of a sample to `rows` (steps, width), and adds the sample to the linear layer's gradients.
void delta_below_linear(LayerState& layer, int tile, int sample, const SpikeRows& input, const GradientSource& source,
                        const PassContext& context, WorkerScratch& scratch, float* rows) {
  LayerState& linear = *source.linear;
  const int width = layer.width();
  const std::size_t first_row = static_cast<std::size_t>(sample) * context.steps;
  const float* above = source.linear_rows + first_row * linear.stride();
  const int columns = std::min(width, layer.size() - tile * width);
  scratch.dense_input.reserve_discard(static_cast<std::size_t>(context.steps) * width);
  kernels::forward_membrane(width, layer.input_of_sample(tile, input, sample, context.steps), layer.constants(tile),
                            context.steps, scratch.dense_input.data(), width, layer.carried.after(tile, sample));
  for (int t = 0; t < linear.tiles(); ++t) {
    kernels::linear_weight_gradient(linear.width(), scratch.dense_input.data(), width, columns,
                                    above + t * linear.width(), linear.stride(), context.steps,
                                    linear.kept_gradient(t) + static_cast<std::size_t>(tile) * width * linear.width());
  }
  const float* weights = source.linear_weights_by_output + static_cast<std::size_t>(tile) * linear.size() * width;
  scratch.partials.reserve_discard(width);
  std::fill_n(scratch.partials.data(), width, 0.0f);  // as the bias
  kernels::linear_rows(width, above, linear.stride(), linear.size(), weights, scratch.partials.data(), context.steps,
                       rows, width);
  kernels::backward_membrane(width, layer.constants(tile), context.steps, rows, width, layer.bias_gradient(tile));
}

/// A worker's transient gradients of the tile at hand, or the kept ones.
TileGradient gradient_of(LayerState& layer, int tile, bool keep, WorkerScratch& scratch) {
  if (keep) return kept_gradients(layer, tile);
  scratch.gradient.reserve_discard(layer.tile_floats());
  scratch.recurrent_gradient.reserve_discard(layer.block_floats(ParameterKind::recurrent_weight));
  return {scratch.gradient.data(), scratch.recurrent_gradient.data()};
}

}  // namespace

void scale_by(float value, float* gradient, std::size_t count) {
  if (value == 1.0F) return;
  for (std::size_t i = 0; i < count; ++i) gradient[i] *= value;
}

TileGradient kept_gradients(LayerState& layer, int tile) {
  return {layer.kept_gradient(tile), layer.kept_recurrent_gradient(tile)};
}

namespace {

/// The states of a sample once more: they are dense, so they are made again rather than kept. Its spikes are in
/// scratch.spike_masks.
const float* retrace(LayerState& layer, int tile, int sample, const SpikeRows& input, const PassContext& context,
                     WorkerScratch& scratch) {
  const std::size_t row = static_cast<std::size_t>(sample) * context.steps;
  const kernels::OwnInput own{layer.recurrent_weights(tile), layer.spikes.offsets.data() + row, layer.spikes.ids.data(),
                              row_of(layer.carried.spikes(), sample)};
  layer.kernels().retrace(layer.width(), layer.input_of_sample(tile, input, sample, context.steps), own,
                          layer.constants(tile), context.steps, scratch.spike_masks.data(), scratch.states.data());
  return scratch.states.data();
}

}  // namespace

void delta_of_sample(LayerState& layer, int tile, int sample, const SpikeRows& input, float* rows,
                     std::ptrdiff_t stride, const PassContext& context, WorkerScratch& scratch,
                     kernels::Bf16Pair* half_rows, float* sums) {
  const TileTrace& trace = layer.traces[tile];
  const bool through_reset = layer.spec().reset_gradient;
  const std::size_t cells = static_cast<std::size_t>(context.steps) * layer.width();
  scratch.spike_masks.reserve_discard(context.steps);
  scratch.drives.reserve_discard(layer.states() * cells);
  const std::size_t entry = trace.entry_start[sample], entries = trace.entry_start[sample + 1] - entry;
  scratch.entry_rows.reserve_discard(entries + 8);
  kernels::expand_rows(trace.counts.data() + static_cast<std::size_t>(sample) * context.steps, context.steps,
                       scratch.entry_rows.data());
  const kernels::TraceIn lists{entries, scratch.entry_rows.data(), trace.codes.data() + entry,
                               trace.derivatives.data() + entry,
                               through_reset ? trace.membranes.data() + entry : nullptr};
  std::fill_n(sums, layer.width(), 0.0f);
  kernels::ConstantGradients learned{};
  if (layer.learns_constants()) {
    kernels::masks_of_spikes(lists, context.steps, scratch.spike_masks.data());
    scratch.states.reserve_discard((layer.states() + 1) * cells);
    const CarriedState::LastStep before = layer.carried.last_step(tile, sample);
    learned = {retrace(layer, tile, sample, input, context, scratch), sums + layer.width(), before.states,
               before.spiked};
  }
  layer.kernels().backward(layer.width(), layer.constants(tile), lists,
                           trace.spike_gradient.data() + trace.active_start[sample], layer.rate_gradient(tile),
                           context.steps,
                           {rows, stride, sums, scratch.spike_masks.data(), scratch.drives.data(), half_rows},
                           layer.learns_constants() ? &learned : nullptr);
  if (!layer.learns_constants()) return;
  const std::size_t last = static_cast<std::size_t>(context.steps) - 1;
  layer.carried.keep_last_step(tile, sample, learned.states + last * (layer.states() + 1) * layer.width(),
                               scratch.spike_masks[last]);
}

void add_delta_of_sample(LayerState& layer, int tile, int sample, const SpikeRows& input, float* rows,
                         std::ptrdiff_t stride, const PassContext& context, WorkerScratch& scratch,
                         kernels::Bf16Pair* half_rows) {
  scratch.sample_sums.reserve_discard(layer.sample_sums());
  delta_of_sample(layer, tile, sample, input, rows, stride, context, scratch, half_rows, scratch.sample_sums.data());
  layer.add_sample_sums(tile, scratch.sample_sums.data());
}

namespace {

/// Hands the weights of the inputs from `first` to `last` to the update.
void update_weights(LayerState& layer, int tile, int first, int last, const float* gradient, const UpdateRule& rule) {
  constexpr int kInputsPerPiece = 32;  // a piece is in the first-level cache when its copy is made
  for (; first < last; first += kInputsPerPiece) {
    const int count = std::min(kInputsPerPiece, last - first);
    const std::size_t at = static_cast<std::size_t>(first) * layer.width();
    rule.update->apply({rule.layer, tile, ParameterKind::weight}, at, layer.weights(tile) + at, gradient + at,
                       static_cast<std::size_t>(count) * layer.width());
    layer.round_weights(tile, first, count);
  }
}

/// The biases and learned constants of a tile's neurons.
void update_neurons(LayerState& layer, int tile, const UpdateRule& rule) {
  if (layer.spec().bias) {
    rule.update->apply({rule.layer, tile, ParameterKind::bias}, 0, layer.bias(tile), layer.bias_gradient(tile),
                       layer.width());
  }
  for (const ParameterKind kind : kParameterKinds) {
    if (kind < ParameterKind::decay || !has_parameter(layer.spec(), kind)) continue;
    rule.update->apply({rule.layer, tile, kind}, 0, layer.values(kind, tile), layer.neuron_gradient(kind, tile),
                       layer.width());
  }
  layer.keep_limits(tile);
}

/// Adds the time until its end to a worker's time for updates.
class UpdateTimer {
 public:
  explicit UpdateTimer(WorkerScratch& scratch) : seconds_(scratch.update_seconds) {}
  UpdateTimer(const UpdateTimer&) = delete;
  ~UpdateTimer() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void update_tile(LayerState& layer, int tile, const TileGradient& gradient, const UpdateRule& rule,
                 WorkerScratch& scratch) {
  const UpdateTimer timer(scratch);
  update_weights(layer, tile, 0, layer.inputs(), gradient.weight, rule);
  if (layer.recurrent()) {
    rule.update->apply({rule.layer, tile, ParameterKind::recurrent_weight}, 0, layer.recurrent_weights(tile),
                       gradient.recurrent_weight, layer.block_floats(ParameterKind::recurrent_weight));
  }
  update_neurons(layer, tile, rule);
}

void prepare_spike_gradient(LayerState& layer) {
  for (TileTrace& trace : layer.traces) trace.spike_gradient.resize(trace.active_start.back());
}

void distribute_to_tiles(LayerState& below, int sample, int steps, const float* gradient, WorkerScratch& scratch,
                         bool adds) {
  std::vector<float*>& cursors = scratch.cursors;
  cursors.clear();
  for (TileTrace& trace : below.traces) cursors.push_back(trace.spike_gradient.data() + trace.active_start[sample]);
  const std::uint32_t* offsets = below.active.offsets.data() + static_cast<std::size_t>(sample) * steps;
  if (below.outgoing.changes()) {
    scratch.returned.reserve_discard(offsets[steps] - offsets[0]);
    below.outgoing.return_gradient(sample, below.active, gradient, scratch.returned.data());
    gradient = scratch.returned.data();
  }
  const int tile_bits = std::countr_zero(static_cast<unsigned>(below.width()));
  // Ids ascend within a row and rows ascend, so each tile's events arrive in the order of its own list.
  if (adds) {
    for (std::uint32_t e = offsets[0]; e < offsets[steps]; ++e)
      *cursors[below.active.ids[e] >> tile_bits]++ += gradient[e - offsets[0]];
    return;
  }
  for (std::uint32_t e = offsets[0]; e < offsets[steps]; ++e)
    *cursors[below.active.ids[e] >> tile_bits]++ = gradient[e - offsets[0]];
}

namespace {

/// Asks for rows in order that are about to be read in any order. Those of a recurrent layer come from beyond L2, and
/// each would be waited for (weight gradient and all: 10 % of a backward pass on shd-rnn; Emerald Rapids).
void prefetch(const float* rows, std::size_t floats) {
  constexpr std::size_t kFloatsPerLine = kCacheLine / sizeof(float);
  for (std::size_t i = 0; i < floats; i += kFloatsPerLine) __builtin_prefetch(rows + i, 0, 2);
}

/// The passes of a layer over a group of samples, tile by tile:
///
///   1. delta of a range of samples, in the worker's own memory, unless a loop (loop.hpp) has made it
///   2. each tile's part of dLoss/ds of the layers below, at their active sets
///   3. the weight gradient from the events of that range, and with the last range the update
///
/// A tile that several workers share stands apart: each of them makes 1 and 2 of its part of the samples, with deltas
/// where all can read them; then, once they have met, 3 of its part of the inputs. So every sum is made in one piece
/// and in the same order as by one worker.
class GroupPass {
 public:
  /// `keep`: gradients outlive the group. `loop`: k delta of the group, if it is made.
  GroupPass(LayerState& layer, const SpikeRows& input, InputSources* below, const GradientSource& source,
            const UpdateRule& rule, const PassContext& context, SampleRange group, bool keep, const LoopDelta* loop)
      : layer_(layer),
        input_(input),
        below_(below),
        source_(source),
        rule_(rule),
        context_(context),
        group_(group),
        keep_(keep),
        loop_(loop),
        width_(layer.width()),
        ranges_(ranges_of(group, std::max(1, context.plan->delta_rows / context.steps))),
        shared_(*context.shared) {}

  void run() {
    transpose_events(input_, context_.steps, ranges_, *context_.team, shared_.transposed);
    if (layer_.recurrent()) {
      transpose_events(layer_.spikes.view(layer_.size()), context_.steps, ranges_, *context_.team,
                       loop_->scratch.own_transposed, &layer_.carried.spikes());
    }
    if (below_) {
      active_ = below_->active().offsets.data();
      // Each tile's part starts at a cache line, so that no two workers write one line.
      part_stride_ = (active_of(group_) + 15) / 16 * 16;
      shared_.partials.reserve_discard(part_stride_ * layer_.tiles());
    }
    layer_.half_rows() ? run_tiles<kernels::Bf16Pair>() : run_tiles<float>();
    if (below_) hand_down();
  }

 private:
  std::size_t row_of(int sample) const { return static_cast<std::size_t>(sample) * context_.steps; }
  std::size_t active_of(SampleRange samples) const {
    return active_[row_of(samples.last)] - active_[row_of(samples.first)];
  }
  bool first_group() const { return group_.first == 0; }
  bool last_group() const { return group_.last == context_.samples; }

  template <class Number>
  void run_tiles() {
    if (layer_.shared_tiles() > 0) make_room<Number>();
    context_.team->run([&](int worker) {
      WorkerScratch& scratch = (*context_.scratch)[worker];
      const auto for_own = [&](bool whole, const auto& work) {
        for (const TileShare& share : layer_.shares()) {
          if (share.worker == worker && share.whole() == whole) work(share);
        }
      };
      for_own(false, [&](const TileShare& share) { shared_delta<Number>(share, scratch); });
      for_own(true, [&](const TileShare& share) { whole_tile<Number>(share.tile, scratch); });
      if (layer_.shared_tiles() == 0 || !context_.team->meet()) return;
      for_own(false, [&](const TileShare& share) { shared_gradient<Number>(share, scratch); });
    });
  }

  // --- any tile ---

  /// Deltas are float32 or, in the bf16 mode, pairs of bf16: how many of them so many samples have.
  template <class Number>
  std::size_t numbers(int samples) const {
    return row_of(samples) * width_ / (std::is_same_v<Number, float> ? 1 : 2);
  }
  template <class Number>
  static AlignedBuffer<Number>& buffer(AlignedBuffer<float>& full, AlignedBuffer<kernels::Bf16Pair>& half) {
    if constexpr (std::is_same_v<Number, float>)
      return full;
    else
      return half;
  }
  const float* weights_of(int tile, const float*) const { return layer_.weights(tile); }
  const kernels::Bf16Pair* weights_of(int tile, const kernels::Bf16Pair*) const { return layer_.half_weights(tile); }

  /// k delta of a sample, (steps, width) of numbers.
  void make_delta(int tile, int sample, float* rows, float* sums, WorkerScratch& scratch) {
    delta_of_sample(layer_, tile, sample, input_, rows, width_, context_, scratch, nullptr, sums);
  }
  void make_delta(int tile, int sample, kernels::Bf16Pair* rows, float* sums, WorkerScratch& scratch) {
    scratch.rows.reserve_discard(row_of(1) * width_);
    delta_of_sample(layer_, tile, sample, input_, scratch.rows.data(), width_, context_, scratch, rows, sums);
  }

  template <class Number>
  void input_gradient(int tile, SampleRange samples, const Number* delta) {
    if (!below_) return;
    const std::uint32_t* offsets = active_ + row_of(samples.first);
    kernels::input_gradient(
        width_, weights_of(tile, delta), delta, row_of(samples.size()), offsets, below_->active().ids.data(),
        shared_.partials.data() + tile * part_stride_ + (offsets[0] - active_[row_of(group_.first)]));
  }

  template <class Number>
  void weight_gradient(const TransposedEvents& events, int first, int last, const Number* delta, float* gradient) {
    kernels::weight_gradient(width_, events.starts.data(), events.event_rows.data(), first, last, delta,
                             events.samples.first == 0 ? kernels::Gradient::start : kernels::Gradient::add, gradient);
  }

  // --- a tile of one worker ---

  template <class Number>
  void whole_tile(int tile, WorkerScratch& scratch) {
    if (first_group()) layer_.start_gradients(tile);
    const TileGradient gradient = gradient_of(layer_, tile, keep_, scratch);
    for (std::size_t range = 0; range < ranges_.size(); ++range) {
      const TransposedEvents& events = shared_.transposed[range];
      if (loop_) {
        const float* delta = loop_->rows.at(tile, row_of(ranges_[range].first - group_.first));
        prefetch(delta, row_of(ranges_[range].size()) * width_);
        input_gradient(tile, ranges_[range], delta);
        weight_gradient(events, 0, input_.neurons, delta, gradient.weight);
        const TransposedEvents* own = layer_.recurrent() ? &loop_->scratch.own_transposed[range] : nullptr;
        add_own_gradients(layer_, tile, input_, ranges_[range], own, context_, scratch, delta, width_,
                          gradient.recurrent_weight);
        continue;
      }
      const Number* delta = delta_of<Number>(tile, ranges_[range], scratch);
      input_gradient(tile, ranges_[range], delta);
      weight_gradient(events, 0, input_.neurons, delta, gradient.weight);
    }
    if (!last_group()) return;
    scale_by(input_.value, gradient.weight, layer_.tile_floats());
    layer_.finish_gradients(tile);
    if (rule_.update) update_tile(layer_, tile, gradient, rule_, scratch);
  }

  /// k delta of a range of samples in the worker's own memory.
  template <class Number>
  const Number* delta_of(int tile, SampleRange range, WorkerScratch& scratch) {
    AlignedBuffer<Number>& rows = buffer<Number>(scratch.rows, scratch.half_rows);
    rows.reserve_discard(numbers<Number>(range.size()));
    scratch.sample_sums.reserve_discard(layer_.sample_sums());
    for (int sample = range.first; sample < range.last; ++sample) {
      Number* of_sample = rows.data() + numbers<Number>(sample - range.first);
      if constexpr (std::is_same_v<Number, float>) {
        if (source_.linear) {
          delta_below_linear(layer_, tile, sample, input_, source_, context_, scratch, of_sample);
          continue;
        }
      }
      make_delta(tile, sample, of_sample, scratch.sample_sums.data(), scratch);
      layer_.add_sample_sums(tile, scratch.sample_sums.data());
    }
    return rows.data();
  }

  // --- a tile that several workers share ---

  template <class Number>
  void make_room() {
    const std::size_t tiles = layer_.shared_tiles();
    buffer<Number>(shared_.layers.front().delta, shared_.half_delta)
        .reserve_discard(tiles * numbers<Number>(group_.size()));
    shared_.sample_sums.reserve_discard(tiles * group_.size() * layer_.sample_sums());
    if (!keep_) shared_.shared_gradient.reserve_discard(tiles * layer_.tile_floats());
  }
  template <class Number>
  Number* shared_rows(int tile, int sample) {
    return buffer<Number>(shared_.layers.front().delta, shared_.half_delta).data() +
           numbers<Number>(layer_.number_among_shared(tile) * group_.size() + sample - group_.first);
  }
  float* shared_sums(int tile, int sample) {
    const int at = layer_.number_among_shared(tile) * group_.size() + sample - group_.first;
    return shared_.sample_sums.data() + at * layer_.sample_sums();
  }

  template <class Number>
  void shared_delta(const TileShare& share, WorkerScratch& scratch) {
    const SampleRange samples = samples_of(share, group_);
    for (int sample = samples.first; sample < samples.last; ++sample) {
      make_delta(share.tile, sample, shared_rows<Number>(share.tile, sample), shared_sums(share.tile, sample), scratch);
      input_gradient(share.tile, {sample, sample + 1}, shared_rows<Number>(share.tile, sample));
    }
  }

  template <class Number>
  void shared_gradient(const TileShare& share, WorkerScratch& scratch) {
    const int tile = share.tile, first = share.begin(layer_.inputs()), last = share.end(layer_.inputs());
    const bool owns = share.first == 0;
    float* gradient = keep_ ? layer_.kept_gradient(tile)
                            : shared_.shared_gradient.data() + layer_.number_among_shared(tile) * layer_.tile_floats();
    for (const TransposedEvents& events : shared_.transposed)
      weight_gradient(events, first, last, shared_rows<Number>(tile, events.samples.first), gradient);
    if (owns && first_group()) layer_.start_gradients(tile);
    for (int sample = group_.first; owns && sample < group_.last; ++sample)
      layer_.add_sample_sums(tile, shared_sums(tile, sample));
    if (!last_group()) return;
    scale_by(input_.value, gradient + static_cast<std::size_t>(first) * width_,
             static_cast<std::size_t>(last - first) * width_);
    if (owns) layer_.finish_gradients(tile);
    if (!rule_.update) return;
    const UpdateTimer timer(scratch);
    update_weights(layer_, tile, first, last, gradient, rule_);
    if (owns) update_neurons(layer_, tile, rule_);
  }

  // --- after the tiles ---

  /// Adds the tiles' parts of dLoss/ds of the layers below and hands the sums to them.
  void hand_down() {
    context_.team->for_each(group_.size(), [&](std::size_t i, int worker) {
      const int sample = group_.first + static_cast<int>(i);
      const std::size_t begin = active_of({group_.first, sample}), count = active_of({sample, sample + 1});
      WorkerScratch& scratch = (*context_.scratch)[worker];
      scratch.partials.reserve_discard(count);
      std::vector<const float*> parts;
      parts.reserve(layer_.tiles());
      for (int tile = 0; tile < layer_.tiles(); ++tile)
        parts.push_back(shared_.partials.data() + tile * part_stride_ + begin);
      kernels::add_in_order(parts, count, scratch.partials.data());
      below_->distribute(sample, context_.steps, scratch.partials.data(), scratch);
    });
  }

  LayerState& layer_;
  const SpikeRows& input_;
  InputSources* below_;
  const GradientSource& source_;
  const UpdateRule& rule_;
  const PassContext& context_;
  SampleRange group_;
  bool keep_;
  const LoopDelta* loop_;  // null: of a feed-forward layer
  int width_;
  std::vector<SampleRange> ranges_;
  SharedScratch& shared_;
  const std::uint32_t* active_ = nullptr;  // offsets of below->active()
  std::size_t part_stride_ = 0;
};

/// Samples of a feed-forward layer whose deltas fit the budget, where several workers need them.
int samples_of_shared_deltas(const LayerState& layer, const PassContext& context) {
  if (layer.shared_tiles() == 0) return context.samples;
  const std::size_t sample_bytes = static_cast<std::size_t>(context.steps) * layer.width() *
                                   (layer.half_rows() ? sizeof(kernels::Bf16Pair) / 2 : sizeof(float)) *
                                   layer.shared_tiles();
  return static_cast<int>(std::clamp<std::size_t>(context.plan->shared_delta_bytes / sample_bytes, 1, context.samples));
}

}  // namespace

int samples_within_budget(const LayerState& layer, const InputSources* below, int first, const PassContext& context) {
  if (!below) return context.samples - first;
  const std::size_t events_allowed =
      std::max<std::size_t>(1, layer.partial_budget_bytes() / (sizeof(float) * layer.tiles()));
  const auto events_before = [&](int sample) {
    return below->active().offsets[static_cast<std::size_t>(sample) * context.steps];
  };
  int last = first + 1;
  while (last < context.samples && events_before(last + 1) - events_before(first) <= events_allowed) ++last;
  return last - first;
}

void backward_sparse_group(LayerState& layer, const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                           const PassContext& context, SampleRange group, bool keep, const LoopDelta& delta) {
  GroupPass(layer, input, below, {}, rule, context, group, keep, &delta).run();
}

void backward_sparse(LayerState& layer, const SpikeRows& input, InputSources* below, const GradientSource& source,
                     const UpdateRule& rule, const PassContext& context) {
  // The bits do not depend on the cut.
  std::vector<SampleRange> groups;
  const int most = samples_of_shared_deltas(layer, context);
  for (int first = 0; first < context.samples; first = groups.back().last)
    groups.push_back({first, first + std::min(most, samples_within_budget(layer, below, first, context))});
  const bool keep = rule.update == nullptr || groups.size() > 1;
  if (keep) kept_gradients(layer, 0);  // allocated before the workers need it
  if (below) below->prepare_gradient();
  for (const SampleRange& group : groups)
    GroupPass(layer, input, below, source, rule, context, group, keep, nullptr).run();
}

}  // namespace spikeloom
