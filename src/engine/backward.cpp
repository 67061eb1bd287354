#include <algorithm>
#include <bit>
#include <chrono>

#include "engine/passes.hpp"

namespace spikeloom {
namespace {

/// Ranges of samples whose partial input gradients (one float for an event and a tile), and deltas where all tiles' are
/// kept, fit the budget. The bits do not depend on the cut.
std::vector<SampleRange> groups_within_budget(const LayerState& layer, const InputSources* below,
                                              const PassContext& context) {
  const int most = layer.recurrent() ? recurrent_group_size(layer, context) : context.samples;
  if (!below) return ranges_of({0, context.samples}, most);
  const std::size_t events_allowed =
      std::max<std::size_t>(1, context.plan->partial_budget_bytes / (sizeof(float) * layer.tiles()));
  const auto events_before = [&](int sample) {
    return below->active().offsets[static_cast<std::size_t>(sample) * context.steps];
  };
  std::vector<SampleRange> groups;
  for (int first = 0; first < context.samples;) {
    int last = first + 1;
    while (last < context.samples && last - first < most &&
           events_before(last + 1) - events_before(first) <= events_allowed)
      ++last;
    groups.push_back({first, last});
    first = last;
  }
  return groups;
}

/// One tile's turn over the samples of a group.
class TileTurn {
 public:
  TileTurn(LayerState& layer, int tile, const GradientSource& source, const PassContext& context,
           WorkerScratch& scratch)
      : layer_(layer), tile_(tile), source_(source), context_(context), scratch_(scratch), width_(layer.width()) {}

  /// Phase 1: delta of a range of samples, (rows of the range, width), in the worker's own memory.
  const float* delta(const SpikeRows& input, SampleRange range) {
    const std::size_t sample_floats = static_cast<std::size_t>(context_.steps) * width_;
    scratch_.rows.reserve_discard(range.size() * sample_floats);
    for (int sample = range.first; sample < range.last; ++sample) {
      float* rows = scratch_.rows.data() + (sample - range.first) * sample_floats;
      if (source_.linear) {
        membrane_sample(input, sample, rows);
      } else {
        delta_of_sample(layer_, tile_, sample, input, rows, width_, context_, scratch_);
      }
    }
    return scratch_.rows.data();
  }

  /// The same in bf16, (rows of the range, width / 2).
  const kernels::Bf16Pair* half_delta(const SpikeRows& input, SampleRange range) {
    const std::size_t sample_floats = static_cast<std::size_t>(context_.steps) * width_;
    scratch_.rows.reserve_discard(sample_floats);
    scratch_.half_rows.reserve_discard(range.size() * sample_floats / 2);
    for (int sample = range.first; sample < range.last; ++sample) {
      delta_of_sample(layer_, tile_, sample, input, scratch_.rows.data(), width_, context_, scratch_,
                      scratch_.half_rows.data() + (sample - range.first) * sample_floats / 2);
    }
    return scratch_.half_rows.data();
  }

 private:
  /// A leaky integrator below a linear layer: its membranes are computed again rather than kept, for they are dense.
  void membrane_sample(const SpikeRows& input, int sample, float* rows) {
    LayerState& linear = *source_.linear;
    const std::size_t first_row = static_cast<std::size_t>(sample) * context_.steps;
    const float* above = source_.linear_rows + first_row * linear.stride();
    const int columns = std::min(width_, layer_.size() - tile_ * width_);
    scratch_.dense_input.reserve_discard(static_cast<std::size_t>(context_.steps) * width_);
    kernels::forward_membrane(width_, layer_.input_of(tile_, input, first_row), layer_.constants(tile_), context_.steps,
                              scratch_.dense_input.data(), width_);
    for (int t = 0; t < linear.tiles(); ++t) {
      kernels::linear_weight_gradient(
          linear.width(), scratch_.dense_input.data(), width_, columns, above + t * linear.width(), linear.stride(),
          context_.steps, linear.kept_gradient(t) + static_cast<std::size_t>(tile_) * width_ * linear.width());
    }
    const float* weights = source_.linear_weights_by_output + static_cast<std::size_t>(tile_) * linear.size() * width_;
    scratch_.partials.reserve_discard(width_);
    std::fill_n(scratch_.partials.data(), width_, 0.0f);  // as the bias
    kernels::linear_rows(width_, above, linear.stride(), linear.size(), weights, scratch_.partials.data(),
                         context_.steps, rows, width_);
    kernels::backward_membrane(width_, layer_.constants(tile_), context_.steps, rows, width_,
                               layer_.bias_gradient(tile_));
  }

  LayerState& layer_;
  int tile_;
  const GradientSource& source_;
  const PassContext& context_;
  WorkerScratch& scratch_;
  int width_;
};

/// A worker's transient gradients of the tile at hand, or the kept ones.
TileGradient gradient_of(LayerState& layer, int tile, bool keep, bool first_group, WorkerScratch& scratch) {
  if (first_group) layer.start_gradients(tile);
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
  const kernels::OwnInput own{layer.recurrent_weights(tile), layer.spikes.offsets.data() + row,
                              layer.spikes.ids.data()};
  layer.kernels().retrace(layer.width(), layer.input_of(tile, input, row), own, layer.constants(tile), context.steps,
                          scratch.spike_masks.data(), scratch.states.data());
  return scratch.states.data();
}

}  // namespace

void delta_of_sample(LayerState& layer, int tile, int sample, const SpikeRows& input, float* rows,
                     std::ptrdiff_t stride, const PassContext& context, WorkerScratch& scratch,
                     kernels::Bf16Pair* half_rows) {
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
  kernels::ConstantGradients learned{};
  if (layer.learns_constants()) {
    kernels::masks_of_spikes(lists, context.steps, scratch.spike_masks.data());
    scratch.states.reserve_discard((layer.states() + 1) * cells);
    scratch.constant_gradients.reserve_discard(static_cast<std::size_t>(layer.width()) * kNeuronConstants);
    learned = {retrace(layer, tile, sample, input, context, scratch), scratch.constant_gradients.data()};
  }
  layer.kernels().backward(
      layer.width(), layer.constants(tile), lists, trace.spike_gradient.data() + trace.active_start[sample],
      layer.rate_gradient(tile), context.steps,
      {rows, stride, layer.bias_gradient(tile), scratch.spike_masks.data(), scratch.drives.data(), half_rows},
      layer.learns_constants() ? &learned : nullptr);
  if (layer.learns_constants()) layer.add_constant_gradients(tile, learned.sums);
}

void update_tile(LayerState& layer, int tile, const TileGradient& gradient, const UpdateRule& rule,
                 WorkerScratch& scratch) {
  const auto start = std::chrono::steady_clock::now();
  // A piece is in the first-level cache when its copy is made.
  constexpr int kInputsPerPiece = 32;
  for (int first = 0; first < layer.inputs(); first += kInputsPerPiece) {
    const int count = std::min(kInputsPerPiece, layer.inputs() - first);
    const std::size_t at = static_cast<std::size_t>(first) * layer.width();
    rule.update->apply({rule.layer, tile, ParameterKind::weight}, at, layer.weights(tile) + at, gradient.weight + at,
                       static_cast<std::size_t>(count) * layer.width());
    layer.round_weights(tile, first, count);
  }
  if (layer.recurrent()) {
    rule.update->apply({rule.layer, tile, ParameterKind::recurrent_weight}, 0, layer.recurrent_weights(tile),
                       gradient.recurrent_weight, layer.block_floats(ParameterKind::recurrent_weight));
  }
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
  scratch.update_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

/// Phase 1 of a recurrent layer, whose tiles need each other at every step: k delta of a group of samples, and the
/// events that its own gradients are made from.
TileRows delta_of_all_tiles(LayerState& layer, SampleRange group, std::span<const SampleRange> ranges,
                            const PassContext& context) {
  const std::size_t tile_floats = static_cast<std::size_t>(group.size()) * context.steps * layer.width();
  context.shared->delta.reserve_discard(tile_floats * layer.tiles());
  const TileRows rows{context.shared->delta.data(), static_cast<std::ptrdiff_t>(tile_floats), layer.width()};
  recurrent_delta(layer, group, rows, context);
  transpose_events(layer.spikes.view(layer.size()), context.steps, ranges, *context.team,
                   context.shared->own_transposed, 1);
  return rows;
}

}  // namespace

void backward_sparse(LayerState& layer, const SpikeRows& input, InputSources* below, const GradientSource& source,
                     const UpdateRule& rule, const PassContext& context) {
  const std::vector<SampleRange> groups = groups_within_budget(layer, below, context);
  const bool keep = rule.update == nullptr || groups.size() > 1;
  const int range_size = std::max(1, context.plan->delta_rows / context.steps);
  if (keep) kept_gradients(layer, 0);  // allocated before the workers need it
  if (below) below->prepare_gradient();
  std::vector<TransposedEvents>& transposed = context.shared->transposed;
  AlignedBuffer<float>& partials = context.shared->partials;
  for (const SampleRange& group : groups) {
    const bool first = group.first == 0, last = group.last == context.samples;
    const std::vector<SampleRange> ranges = ranges_of(group, range_size);
    transpose_events(input, context.steps, ranges, *context.team, transposed);
    const TileRows own_delta = layer.recurrent() ? delta_of_all_tiles(layer, group, ranges, context) : TileRows{};
    const auto row_of = [&](int sample) { return static_cast<std::size_t>(sample) * context.steps; };
    const std::uint32_t* active = below ? below->active().offsets.data() : nullptr;
    const std::size_t events = below ? active[row_of(group.last)] - active[row_of(group.first)] : 0;
    // Each tile's part starts at a cache line, so that no two workers write one line.
    const std::size_t part_stride = (events + 15) / 16 * 16;
    partials.reserve_discard(part_stride * layer.tiles());

    // Phases 2 and 3 of a tile and a range of samples.
    const auto accumulate = [&](int tile, const TransposedEvents& events_by_id, const auto* weights, const auto* delta,
                                float* gradient) {
      const SampleRange range = events_by_id.samples;
      if (below) {
        const std::uint32_t* offsets = active + row_of(range.first);
        kernels::input_gradient(layer.width(), weights, delta, row_of(range.size()), offsets,
                                below->active().ids.data(),
                                partials.data() + tile * part_stride + (offsets[0] - active[row_of(group.first)]));
      }
      kernels::weight_gradient(layer.width(), events_by_id.starts.data(), events_by_id.event_rows.data(), 0,
                               input.neurons, delta,
                               range.first == 0 ? kernels::Gradient::start : kernels::Gradient::add, gradient);
    };
    context.team->run([&](int worker) {
      WorkerScratch& scratch = (*context.scratch)[worker];
      for (int tile = 0; tile < layer.tiles(); ++tile) {
        if (layer.owner(tile) != worker) continue;
        const TileGradient gradient = gradient_of(layer, tile, keep, first, scratch);
        TileTurn turn(layer, tile, source, context, scratch);
        for (std::size_t range = 0; range < transposed.size(); ++range) {
          const SampleRange samples = ranges[range];
          if (layer.recurrent()) {
            const float* delta = own_delta.at(tile, row_of(samples.first - group.first));
            prefetch(delta, row_of(samples.size()) * layer.width());
            accumulate(tile, transposed[range], layer.weights(tile), delta, gradient.weight);
            add_own_gradients(layer, tile, input, context.shared->own_transposed[range], context, scratch, delta,
                              layer.width(), gradient.recurrent_weight);
          } else if (layer.half_rows()) {
            accumulate(tile, transposed[range], layer.half_weights(tile), turn.half_delta(input, samples),
                       gradient.weight);
          } else {
            accumulate(tile, transposed[range], layer.weights(tile), turn.delta(input, samples), gradient.weight);
          }
        }
        if (!last) continue;
        scale_by(input.value, gradient.weight, layer.tile_floats());
        layer.finish_gradients(tile);
        if (rule.update) update_tile(layer, tile, gradient, rule, scratch);
      }
    });
    if (!below) continue;
    context.team->for_each(group.size(), [&](std::size_t i, int worker) {
      const int sample = group.first + static_cast<int>(i);
      const std::size_t begin = active[row_of(sample)] - active[row_of(group.first)];
      const std::size_t count = active[row_of(sample + 1)] - active[row_of(sample)];
      WorkerScratch& scratch = (*context.scratch)[worker];
      scratch.partials.reserve_discard(count);
      std::vector<const float*> parts;
      parts.reserve(layer.tiles());
      for (int tile = 0; tile < layer.tiles(); ++tile) parts.push_back(partials.data() + tile * part_stride + begin);
      kernels::add_in_order(parts, count, scratch.partials.data());
      below->distribute(sample, context.steps, scratch.partials.data(), scratch);
    });
  }
}

}  // namespace spikeloom
