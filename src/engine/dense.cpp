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

/// The layer's weights as one (inputs, stride) matrix.
void gather_weights(const LayerState& layer, const PassContext& context, AlignedBuffer<float>& matrix) {
  matrix.reserve_discard(static_cast<std::size_t>(layer.inputs()) * layer.stride());
  context.team->for_each(layer.tiles(), [&](std::size_t tile, int) {
    const float* from = layer.weights(static_cast<int>(tile));
    float* to = matrix.data() + tile * layer.width();
    for (int input = 0; input < layer.inputs(); ++input, from += layer.width(), to += layer.stride())
      std::copy_n(from, layer.width(), to);
  });
}

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

std::vector<SampleRange> row_groups(const PassContext& context) {
  return ranges_of({0, context.samples}, std::max(1, kRowsPerGroup / context.steps));
}

}  // namespace

void forward_dense(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context) {
  AlignedBuffer<float>&weights = context.shared->weights, &spikes = context.shared->spikes;
  AlignedBuffer<float>& currents = context.shared->currents;
  gather_weights(layer, context, weights);
  for (TileTrace& trace : layer.traces) trace.clear(context.rows(), layer.width());
  const Blocks blocks(layer);
  for (const SampleRange& group : row_groups(context)) {
    densify(input, group, context, spikes);
    const int rows = group.size() * context.steps;
    if (layer.recurrent()) {
      currents.reserve_discard(static_cast<std::size_t>(rows) * layer.stride());
      context.team->for_each(blocks.count(), [&](std::size_t b, int) {
        const int block = static_cast<int>(b), column = blocks.first_column(block);
        matrix_product(false, false, rows, blocks.columns(block), input.neurons, spikes.data(), input.neurons,
                       weights.data() + column, layer.stride(), 0.0f, currents.data() + column, layer.stride());
      });
      forward_recurrent_group(layer, group, {currents.data(), layer.width(), layer.stride()}, listing, context);
      continue;
    }
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

/// Deltas of a recurrent layer, and the gradients of its recurrent weights and biases.
void recurrent_delta_of_group(LayerState& layer, SampleRange group, const SpikeRows& input, const PassContext& context,
                              const TileRows& rows) {
  recurrent_delta(layer, group, rows, context);
  std::vector<TransposedEvents>& own = context.shared->own_transposed;
  transpose_events(layer.spikes.view(layer.size()), context.steps, {&group, 1}, *context.team, own,
                   &layer.carried.spikes());
  layer.kept_recurrent_gradient(0);  // allocated before the workers need it
  context.team->for_each(layer.tiles(), [&](std::size_t t, int worker) {
    const int tile = static_cast<int>(t);
    if (group.first == 0) layer.start_gradients(tile);
    add_own_gradients(layer, tile, input, own.front(), context, (*context.scratch)[worker], rows.at(tile, 0),
                      rows.row_stride, layer.kept_recurrent_gradient(tile));
  });
}

/// Deltas of all tiles for a group of samples, (rows, stride).
void delta_of_group(LayerState& layer, SampleRange group, const SpikeRows& input, const PassContext& context,
                    AlignedBuffer<float>& delta) {
  delta.reserve_discard(static_cast<std::size_t>(group.size()) * context.steps * layer.stride());
  if (layer.recurrent())
    return recurrent_delta_of_group(layer, group, input, context, {delta.data(), layer.width(), layer.stride()});
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

void backward_dense(LayerState& layer, const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                    const PassContext& context) {
  AlignedBuffer<float>&weights = context.shared->weights, &spikes = context.shared->spikes;
  AlignedBuffer<float>&delta = context.shared->delta, &gradient = context.shared->gradient;
  gradient.reserve_discard(static_cast<std::size_t>(layer.inputs()) * layer.stride());
  const Blocks blocks(layer);
  if (below) {
    gather_weights(layer, context, weights);
    below->prepare_gradient();
  }
  for (const SampleRange& group : row_groups(context)) {
    const int rows = group.size() * context.steps;
    delta_of_group(layer, group, input, context, delta);
    densify(input, group, context, spikes);
    LayerState* only = below ? below->only() : nullptr;
    const SpikeLists* sent = below && !only ? &below->active() : nullptr;
    constexpr int kColumns = 64 * kTilesPerBlock;  // of a block of inputs that are not one layer
    const int below_blocks = only ? Blocks(*only).count() : below ? (below->neurons() + kColumns - 1) / kColumns : 0;
    const auto sent_before = [&](int sample) {
      return sent->offsets[static_cast<std::size_t>(sample) * context.steps];
    };
    AlignedBuffer<float>& picked = context.shared->partials;
    if (sent) picked.reserve_discard(sent_before(group.last) - sent_before(group.first));
    context.team->for_each(blocks.count() + below_blocks, [&](std::size_t item, int worker) {
      if (static_cast<int>(item) < blocks.count()) {
        const int block = static_cast<int>(item);
        matrix_product(true, false, input.neurons, blocks.columns(block), rows, spikes.data(), input.neurons,
                       delta.data() + blocks.first_column(block), layer.stride(), group.first == 0 ? 0.0f : 1.0f,
                       gradient.data() + blocks.first_column(block), layer.stride());
        return;
      }
      const int block = static_cast<int>(item) - blocks.count();
      const int first_column = only ? Blocks(*only).first_column(block) : block * kColumns;
      const int columns = only ? Blocks(*only).columns(block) : kColumns;
      const int real_columns = std::min(columns, below->neurons() - first_column);
      WorkerScratch& scratch = (*context.scratch)[worker];
      scratch.currents.reserve_discard(static_cast<std::size_t>(rows) * columns);
      matrix_product(false, true, rows, real_columns, layer.stride(), delta.data(), layer.stride(),
                     weights.data() + static_cast<std::size_t>(first_column) * layer.stride(), layer.stride(), 0.0f,
                     scratch.currents.data(), columns);
      if (only) {
        pick_active(*only, Blocks(*only), block, group, context.steps, scratch.currents.data());
      } else {
        pick_sent(*sent, first_column, columns, group, context.steps, scratch.currents.data(), picked.data());
      }
    });
    if (!sent) continue;
    context.team->for_each(group.size(), [&](std::size_t i, int worker) {
      const int sample = group.first + static_cast<int>(i);
      below->distribute(sample, context.steps, picked.data() + (sent_before(sample) - sent_before(group.first)),
                        (*context.scratch)[worker]);
    });
  }
  layer.kept_gradient(0);
  context.team->for_each(layer.tiles(), [&](std::size_t t, int worker) {
    const int tile = static_cast<int>(t);
    float* to = layer.kept_gradient(tile);
    const float* from = gradient.data() + tile * layer.width();
    for (int in = 0; in < layer.inputs(); ++in, from += layer.stride(), to += layer.width())
      std::copy_n(from, layer.width(), to);
    layer.finish_gradients(tile);
    if (rule.update) update_tile(layer, tile, kept_gradients(layer, tile), rule, (*context.scratch)[worker]);
  });
}

}  // namespace spikeloom
