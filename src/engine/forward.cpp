#include "engine/passes.hpp"

namespace spikeloom {

void forward_sample(LayerState& layer, int tile, const kernels::TileInput& input, Listing listing, int sample, int steps, WorkerScratch& scratch) {
  const int width = layer.width();
  const std::size_t room = static_cast<std::size_t>(steps) * width;
  scratch.codes.reserve_discard(room);
  scratch.membranes.reserve_discard(room);
  TileTrace& trace = layer.traces[tile];
  const kernels::TraceOut out{trace.counts.data() + static_cast<std::size_t>(sample) * steps, scratch.codes.data(), scratch.membranes.data()};
  const std::size_t entries = kernels::forward_spiking(width, input, layer.constants(tile, listing), steps, out);

  std::size_t active = 0, spikes = 0;
  for (std::size_t e = 0; e < entries; ++e) {
    const std::uint8_t code = scratch.codes[e];
    const std::uint32_t spiked = (code & kernels::kSpiked) != 0;
    active += (code & kernels::kActive) != 0;
    spikes += spiked;
    trace.spike_counts[code & kernels::kColumnBits] += spiked;
  }
  const std::size_t start = trace.codes.size();
  trace.codes.insert(trace.codes.end(), scratch.codes.data(), scratch.codes.data() + entries);
  if (listing == Listing::active) {
    trace.derivatives.resize(start + entries);
    kernels::surrogate_derivatives(layer.spec().surrogate, static_cast<float>(layer.spec().threshold), scratch.membranes.data(), entries,
                                   trace.derivatives.data() + start);
  }
  if (listing == Listing::everything || (listing == Listing::active && layer.spec().reset_gradient)) {
    trace.membranes.insert(trace.membranes.end(), scratch.membranes.data(), scratch.membranes.data() + entries);
  }
  trace.entry_start.push_back(start + entries);
  trace.active_start.push_back(trace.active_start.back() + active);
  trace.spike_start.push_back(trace.spike_start.back() + spikes);
}

void forward_sparse(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context) {
  context.team->run([&](int worker) {
    for (int tile = 0; tile < layer.tiles(); ++tile) {
      if (layer.owner(tile) != worker) continue;
      layer.traces[tile].clear(context.rows(), layer.width());
      for (int sample = 0; sample < context.samples; ++sample) {
        const kernels::TileInput from{layer.weights(tile), layer.bias(tile), input.offsets + static_cast<std::size_t>(sample) * context.steps, input.ids};
        forward_sample(layer, tile, from, listing, sample, context.steps, (*context.scratch)[worker]);
      }
    }
  });
  merge_lists(layer, listing == Listing::active, context);
}

namespace {

/// One sample's rows of the merged lists. `spike` and `active` are where its ids start.
void merge_sample(LayerState& layer, bool with_active, int sample, int steps, std::uint32_t spike, std::uint32_t active, std::vector<std::size_t>& cursors) {
  const int tiles = layer.tiles();
  cursors.resize(tiles);
  for (int tile = 0; tile < tiles; ++tile) cursors[tile] = layer.traces[tile].entry_start[sample];
  const std::size_t first_row = static_cast<std::size_t>(sample) * steps;
  for (std::size_t row = first_row; row < first_row + steps; ++row) {
    layer.spikes.offsets[row] = spike;
    if (with_active) layer.active.offsets[row] = active;
    for (int tile = 0; tile < tiles; ++tile) {
      const TileTrace& trace = layer.traces[tile];
      const std::uint8_t* code = trace.codes.data() + cursors[tile];
      const std::uint8_t* end = code + trace.counts[row];
      cursors[tile] += trace.counts[row];
      for (; code != end; ++code) {
        const std::uint32_t id = tile * layer.width() + (*code & kernels::kColumnBits);
        if (*code & kernels::kSpiked) layer.spikes.ids[spike++] = id;
        if (with_active && (*code & kernels::kActive)) layer.active.ids[active++] = id;
      }
    }
  }
}

}  // namespace

void merge_lists(LayerState& layer, bool with_active, const PassContext& context) {
  std::vector<std::uint32_t> spike_base(context.samples + 1, 0), active_base(context.samples + 1, 0);
  for (const TileTrace& trace : layer.traces) {
    for (int sample = 0; sample <= context.samples; ++sample) {
      spike_base[sample] += static_cast<std::uint32_t>(trace.spike_start[sample]);
      active_base[sample] += static_cast<std::uint32_t>(trace.active_start[sample]);
    }
  }
  layer.spikes.offsets.resize(context.rows() + 1);
  layer.spikes.ids.resize(spike_base.back());
  layer.spikes.offsets.back() = spike_base.back();
  layer.active.offsets.clear();
  layer.active.ids.clear();
  if (with_active) {
    layer.active.offsets.resize(context.rows() + 1);
    layer.active.ids.resize(active_base.back());
    layer.active.offsets.back() = active_base.back();
  }
  context.team->for_each(context.samples, [&](std::size_t sample, int worker) {
    merge_sample(layer, with_active, static_cast<int>(sample), context.steps, spike_base[sample], active_base[sample], (*context.scratch)[worker].cursors);
  });
}

}  // namespace spikeloom
