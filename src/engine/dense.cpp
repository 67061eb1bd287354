// The dense path: all steps of a layer in matrix products (OpenBLAS), for layers too busy for lists, and as the honest
// comparison. The neurons, the lists that are kept and the delta recursion are those of the sparse path; only what
// multiplies by a weight matrix differs. Recurrent weights, which are needed step by step, are multiplied by lists here
// too: that is faster than a product of a few rows, so the comparison stays honest.
//
// Bits: each product is one single-threaded call on a block of columns that depends on the layer alone, so they do not
// depend on the number of threads; they do depend on the CPU type, for which OpenBLAS chooses its kernels.
#include <algorithm>

#include "engine/blas.hpp"
#include "engine/passes.hpp"

namespace spikeloom {
namespace {

// Columns of one product: four tiles of 64. Wide enough for OpenBLAS to reach its pace, narrow enough to share a layer
// among a few workers.
constexpr int kTilesPerBlock = 4;
// Rows of one product: the dense inputs of a group of samples are at most this many (sample, step) rows, so that memory
// does not grow with the batch.
constexpr int kRowsPerGroup = 2048;

struct Blocks {
  explicit Blocks(const LayerState& layer) : tiles(layer.tiles()), width(layer.width()) {}
  int count() const { return (tiles + kTilesPerBlock - 1) / kTilesPerBlock; }
  int first_tile(int block) const { return block * kTilesPerBlock; }
  int last_tile(int block) const { return std::min(tiles, (block + 1) * kTilesPerBlock); }
  int columns(int block) const { return (last_tile(block) - first_tile(block)) * width; }
  int first_column(int block) const { return first_tile(block) * width; }
  int tiles;
  int width;
};

}  // namespace

void gather_weights(const LayerState& layer, const PassContext& context, AlignedBuffer<float>& matrix) {
  matrix.reserve_discard(static_cast<std::size_t>(layer.inputs()) * layer.stride());
  context.team->for_each(layer.tiles(), [&](std::size_t tile, int) {
    const float* from = layer.weights(static_cast<int>(tile));
    float* to = matrix.data() + tile * layer.width();
    for (int input = 0; input < layer.inputs(); ++input, from += layer.width(), to += layer.stride())
      std::copy_n(from, layer.width(), to);
  });
}

namespace {

/// The spikes of a group of samples as (rows, neurons) of 0, what a spike counts, or its multiples.
void densify(const SpikeRows& input, SampleRange group, const PassContext& context, AlignedBuffer<float>& matrix) {
  matrix.reserve_discard(static_cast<std::size_t>(group.size()) * context.steps * input.neurons);
  context.team->for_each(group.size(), [&](std::size_t i, int) {
    const std::uint32_t* offsets = input.offsets + (group.first + i) * context.steps;
    float* row = matrix.data() + i * context.steps * input.neurons;
    std::fill_n(row, static_cast<std::size_t>(context.steps) * input.neurons, 0.0f);
    for (int step = 0; step < context.steps; ++step, row += input.neurons) {
      for (std::uint32_t e = offsets[step]; e < offsets[step + 1]; ++e) row[input.ids[e]] += input.value;
    }
  });
}

}  // namespace

int dense_group_size(const PassContext& context) { return std::max(1, kRowsPerGroup / context.steps); }

TileRows dense_currents(const LoopMember& member, const SpikeRows& input, SampleRange group, const PassContext& context,
                        LayerScratch& scratch) {
  const LayerState& layer = *member.layer;
  AlignedBuffer<float>& spikes = context.shared->spikes;
  const int rows = group.size() * context.steps;
  densify(input, group, context, spikes);
  scratch.currents.reserve_discard(static_cast<std::size_t>(rows) * layer.stride());
  if (member.from_outside.empty())
    std::fill_n(scratch.currents.data(), static_cast<std::size_t>(rows) * layer.stride(), 0.0f);
  const Blocks blocks(layer);
  context.team->for_each(blocks.count(), [&](std::size_t b, int) {
    const int block = static_cast<int>(b), column = blocks.first_column(block);
    float added_to = 0.0f;
    for (const InputColumns& part : member.from_outside) {
      matrix_product(false, false, rows, blocks.columns(block), part.count, spikes.data() + part.first, input.neurons,
                     scratch.weights.data() + static_cast<std::size_t>(part.first) * layer.stride() + column,
                     layer.stride(), added_to, scratch.currents.data() + column, layer.stride());
      added_to = 1.0f;
    }
  });
  return {scratch.currents.data(), layer.width(), layer.stride()};
}

void forward_dense(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context) {
  AlignedBuffer<float>&weights = context.shared->layer().weights, &spikes = context.shared->spikes;
  gather_weights(layer, context, weights);
  for (TileTrace& trace : layer.traces) trace.clear(context.rows(), layer.width());
  const Blocks blocks(layer);
  for (const SampleRange& group : ranges_of({0, context.samples}, dense_group_size(context))) {
    densify(input, group, context, spikes);
    const int rows = group.size() * context.steps;
    context.team->for_each(blocks.count(), [&](std::size_t b, int worker) {
      const int block = static_cast<int>(b), columns = blocks.columns(block);
      WorkerScratch& scratch = (*context.scratch)[worker];
      scratch.currents.reserve_discard(static_cast<std::size_t>(rows) * columns);
      matrix_product(false, false, rows, columns, input.neurons, spikes.data(), input.neurons,
                     weights.data() + blocks.first_column(block), layer.stride(), 0.0f, scratch.currents.data(),
                     columns);
      for (int tile = blocks.first_tile(block); tile < blocks.last_tile(block); ++tile) {
        for (int sample = group.first; sample < group.last; ++sample) {
          kernels::TileInput from;
          from.carried = layer.carried.before(tile, sample);
          from.bias = layer.bias(tile);
          from.currents = scratch.currents.data() +
                          static_cast<std::size_t>(sample - group.first) * context.steps * columns +
                          (tile - blocks.first_tile(block)) * layer.width();
          from.current_stride = columns;
          forward_sample(layer, tile, from, listing, context.steps, scratch, layer.traces[tile],
                         layer.carried.after(tile, sample));
        }
      }
    });
  }
  merge_spikes(layer, context);
}

namespace {

/// What the delta of a layer of a loop says of its recurrent weights, biases and constants.
void own_gradients_of_group(LayerState& layer, SampleRange group, const SpikeRows& input, const PassContext& context,
                            const TileRows& delta, std::vector<TransposedEvents>& own) {
  if (layer.recurrent())
    transpose_events(layer.spikes.view(layer.size()), context.steps, {&group, 1}, *context.team, own,
                     &layer.carried.spikes());
  layer.kept_recurrent_gradient(0);  // allocated before the workers need it
  context.team->for_each(layer.tiles(), [&](std::size_t t, int worker) {
    const int tile = static_cast<int>(t);
    if (group.first == 0) layer.start_gradients(tile);
    add_own_gradients(layer, tile, input, group, layer.recurrent() ? &own.front() : nullptr, context,
                      (*context.scratch)[worker], delta.at(tile, 0), delta.row_stride,
                      layer.kept_recurrent_gradient(tile));
  });
}

/// Deltas of all tiles of a feed-forward layer for a group of samples, (rows, stride).
void delta_of_group(LayerState& layer, SampleRange group, const SpikeRows& input, const PassContext& context,
                    AlignedBuffer<float>& delta) {
  delta.reserve_discard(static_cast<std::size_t>(group.size()) * context.steps * layer.stride());
  context.team->for_each(layer.tiles(), [&](std::size_t t, int worker) {
    const int tile = static_cast<int>(t);
    WorkerScratch& scratch = (*context.scratch)[worker];
    if (group.first == 0) layer.start_gradients(tile);
    for (int sample = group.first; sample < group.last; ++sample) {
      float* rows = delta.data() + static_cast<std::size_t>(sample - group.first) * context.steps * layer.stride() +
                    tile * layer.width();
      add_delta_of_sample(layer, tile, sample, input, rows, layer.stride(), context, scratch);
    }
  });
}

/// dLoss/ds of the neurons of one block of the layer below, picked at the active set.
void pick_active(LayerState& below, const Blocks& blocks, int block, SampleRange group, int steps,
                 const float* products) {
  const int columns = blocks.columns(block);
  for (int tile = blocks.first_tile(block); tile < blocks.last_tile(block); ++tile) {
    TileTrace& trace = below.traces[tile];
    const int first_column = (tile - blocks.first_tile(block)) * below.width();
    for (int sample = group.first; sample < group.last; ++sample) {
      std::size_t entry = trace.entry_start[sample], active = trace.active_start[sample];
      const float* row = products + static_cast<std::size_t>(sample - group.first) * steps * columns + first_column;
      const std::uint8_t* counts = trace.counts.data() + static_cast<std::size_t>(sample) * steps;
      for (int step = 0; step < steps; ++step, row += columns) {
        for (const std::size_t end = entry + counts[step]; entry < end; ++entry) {
          const std::uint8_t code = trace.codes[entry];
          if (code & kernels::kActive) trace.spike_gradient[active++] = row[code & kernels::kColumnBits];
        }
      }
    }
  }
}

/// The same of `columns` inputs from the first on where the input is not the active set of one layer: at what was sent,
/// into `picked`, whose first is the group's.
void pick_sent(const SpikeLists& sent, int first_column, int columns, SampleRange group, int steps,
               const float* products, float* picked) {
  const std::size_t first_row = static_cast<std::size_t>(group.first) * steps;
  const std::size_t last_row = static_cast<std::size_t>(group.last) * steps;
  for (std::size_t row = first_row; row < last_row; ++row, products += columns) {
    const auto end = sent.ids.begin() + sent.offsets[row + 1];
    auto id = std::lower_bound(sent.ids.begin() + sent.offsets[row], end, static_cast<std::uint32_t>(first_column));
    for (; id != end && *id < static_cast<std::uint32_t>(first_column + columns); ++id)
      picked[id - sent.ids.begin() - sent.offsets[first_row]] = products[*id - first_column];
  }
}

}  // namespace

DenseBackward::DenseBackward(LayerState& layer, const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                             const PassContext& context, int number)
    : layer_(layer),
      input_(input),
      below_(below),
      rule_(rule),
      context_(context),
      scratch_(context.shared->layer(number)) {
  scratch_.gradient.reserve_discard(static_cast<std::size_t>(layer.inputs()) * layer.stride());
  if (!below) return;
  gather_weights(layer, context, scratch_.weights);
  below->prepare_gradient();
}

void DenseBackward::run(SampleRange group, const TileRows* delta_of_loop) {
  const int rows = group.size() * context_.steps, stride = layer_.stride();
  if (delta_of_loop) {
    own_gradients_of_group(layer_, group, input_, context_, *delta_of_loop, scratch_.own_transposed);
  } else {
    delta_of_group(layer_, group, input_, context_, scratch_.delta);
  }
  const float* delta = scratch_.delta.data();
  AlignedBuffer<float>& spikes = context_.shared->spikes;
  densify(input_, group, context_, spikes);
  const Blocks blocks(layer_);
  LayerState* only = below_ ? below_->only() : nullptr;
  const SpikeLists* sent = below_ && !only ? &below_->active() : nullptr;
  constexpr int kColumns = 64 * kTilesPerBlock;  // of a block of inputs that are not one layer
  const int below_blocks = only ? Blocks(*only).count() : below_ ? (below_->neurons() + kColumns - 1) / kColumns : 0;
  const auto sent_before = [&](int sample) { return sent->offsets[static_cast<std::size_t>(sample) * context_.steps]; };
  AlignedBuffer<float>& picked = context_.shared->partials;
  if (sent) picked.reserve_discard(sent_before(group.last) - sent_before(group.first));
  context_.team->for_each(blocks.count() + below_blocks, [&](std::size_t item, int worker) {
    if (static_cast<int>(item) < blocks.count()) {
      const int block = static_cast<int>(item);
      matrix_product(true, false, input_.neurons, blocks.columns(block), rows, spikes.data(), input_.neurons,
                     delta + blocks.first_column(block), stride, group.first == 0 ? 0.0f : 1.0f,
                     scratch_.gradient.data() + blocks.first_column(block), stride);
      return;
    }
    const int block = static_cast<int>(item) - blocks.count();
    const int first_column = only ? Blocks(*only).first_column(block) : block * kColumns;
    const int columns = only ? Blocks(*only).columns(block) : kColumns;
    const int real_columns = std::min(columns, below_->neurons() - first_column);
    WorkerScratch& scratch = (*context_.scratch)[worker];
    scratch.currents.reserve_discard(static_cast<std::size_t>(rows) * columns);
    matrix_product(false, true, rows, real_columns, stride, delta, stride,
                   scratch_.weights.data() + static_cast<std::size_t>(first_column) * stride, stride, 0.0f,
                   scratch.currents.data(), columns);
    if (only) {
      pick_active(*only, Blocks(*only), block, group, context_.steps, scratch.currents.data());
    } else {
      pick_sent(*sent, first_column, columns, group, context_.steps, scratch.currents.data(), picked.data());
    }
  });
  if (sent) hand_down(group, *sent, picked.data());
}

/// Gives what was picked for a group of samples to the layers below.
void DenseBackward::hand_down(SampleRange group, const SpikeLists& sent, const float* picked) {
  const auto sent_before = [&](int sample) { return sent.offsets[static_cast<std::size_t>(sample) * context_.steps]; };
  context_.team->for_each(group.size(), [&](std::size_t i, int worker) {
    const int sample = group.first + static_cast<int>(i);
    below_->distribute(sample, context_.steps, picked + (sent_before(sample) - sent_before(group.first)),
                       (*context_.scratch)[worker]);
  });
}

void DenseBackward::finish() {
  layer_.kept_gradient(0);
  context_.team->for_each(layer_.tiles(), [&](std::size_t t, int worker) {
    const int tile = static_cast<int>(t);
    float* to = layer_.kept_gradient(tile);
    const float* from = scratch_.gradient.data() + tile * layer_.width();
    for (int in = 0; in < layer_.inputs(); ++in, from += layer_.stride(), to += layer_.width())
      std::copy_n(from, layer_.width(), to);
    layer_.finish_gradients(tile);
    if (rule_.update) update_tile(layer_, tile, kept_gradients(layer_, tile), rule_, (*context_.scratch)[worker]);
  });
}

void backward_dense(LayerState& layer, const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                    const PassContext& context) {
  DenseBackward pass(layer, input, below, rule, context);
  for (const SampleRange& group : ranges_of({0, context.samples}, dense_group_size(context))) pass.run(group, nullptr);
  pass.finish();
}

}  // namespace spikeloom
