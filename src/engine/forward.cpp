#include <algorithm>
#include <utility>

#include "engine/passes.hpp"

namespace spikeloom {

void forward_sample(LayerState& layer, int tile, const kernels::TileInput& input, Listing listing, int sample,
                    int steps, WorkerScratch& scratch) {
  const int width = layer.width();
  const std::size_t room = static_cast<std::size_t>(steps) * width;
  scratch.codes.reserve_discard(room);
  scratch.membranes.reserve_discard(room);
  TileTrace& trace = layer.traces[tile];
  const kernels::TraceOut out{trace.counts.data() + static_cast<std::size_t>(sample) * steps, scratch.codes.data(),
                              scratch.membranes.data()};
  const std::size_t entries = kernels::forward_spiking(width, input, layer.constants(tile, listing), steps, out);
  append_entries(layer, tile, listing, scratch.codes.data(), scratch.membranes.data(), entries);
}

void append_entries(LayerState& layer, int tile, Listing listing, const std::uint8_t* codes, const float* membranes,
                    std::size_t entries) {
  TileTrace& trace = layer.traces[tile];
  std::size_t active = 0, spikes = 0;
  for (std::size_t e = 0; e < entries; ++e) {
    const std::uint8_t code = codes[e];
    const std::uint32_t spiked = (code & kernels::kSpiked) != 0;
    active += (code & kernels::kActive) != 0;
    spikes += spiked;
    trace.spike_counts[code & kernels::kColumnBits] += spiked;
  }
  const std::size_t start = trace.codes.size();
  trace.codes.insert(trace.codes.end(), codes, codes + entries);
  if (listing == Listing::active) {
    trace.derivatives.resize(start + entries);
    kernels::surrogate_derivatives(layer.spec().surrogate, static_cast<float>(layer.spec().threshold), membranes,
                                   entries, trace.derivatives.data() + start);
  }
  if (listing == Listing::everything || (listing == Listing::active && layer.spec().reset_gradient)) {
    trace.membranes.insert(trace.membranes.end(), membranes, membranes + entries);
  }
  trace.entry_start.push_back(start + entries);
  trace.active_start.push_back(trace.active_start.back() + active);
  trace.spike_start.push_back(trace.spike_start.back() + spikes);
}

void forward_sparse(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context) {
  if (layer.recurrent()) return forward_recurrent(layer, input, listing, context);
  context.team->run([&](int worker) {
    for (int tile = 0; tile < layer.tiles(); ++tile) {
      if (layer.owner(tile) != worker) continue;
      layer.traces[tile].clear(context.rows(), layer.width());
      for (int sample = 0; sample < context.samples; ++sample) {
        const kernels::TileInput from{.weights = layer.weights(tile),
                                      .bias = layer.bias(tile),
                                      .offsets = input.offsets + static_cast<std::size_t>(sample) * context.steps,
                                      .ids = input.ids,
                                      .half_weights = layer.half_weights(tile)};
        forward_sample(layer, tile, from, listing, sample, context.steps, (*context.scratch)[worker]);
      }
    }
  });
  merge_spikes(layer, context);
}

namespace {

/// One sample's rows of a merged list; `first` is where its first id goes. A counting sort by row that visits tile by
/// tile, twice: ids ascend within a row because tiles do.
void merge_sample(const LayerState& layer, std::uint8_t flag, int sample, int steps, std::uint32_t first,
                  WorkerScratch& scratch, SpikeLists& out) {
  std::size_t entries = 0;
  for (const TileTrace& trace : layer.traces) entries += trace.entry_start[sample + 1] - trace.entry_start[sample];
  scratch.entry_rows.reserve_discard(entries + 8);
  const std::size_t first_row = static_cast<std::size_t>(sample) * steps;
  std::uint32_t* offsets = out.offsets.data() + first_row;
  std::vector<std::uint32_t>& place = scratch.places;  // of a row: its count, then where its next id goes
  place.assign(steps, 0);
  std::uint32_t* rows = scratch.entry_rows.data();
  for (const TileTrace& trace : layer.traces) {
    const std::size_t begin = trace.entry_start[sample], count = trace.entry_start[sample + 1] - begin;
    kernels::expand_rows(trace.counts.data() + first_row, steps, rows);
    for (std::size_t e = 0; e < count; ++e) place[rows[e]] += (trace.codes[begin + e] & flag) != 0;
    rows += count;
  }
  for (int step = 0; step < steps; ++step) {
    offsets[step] = first;
    first += std::exchange(place[step], first);
  }
  rows = scratch.entry_rows.data();
  std::uint32_t nowhere;
  for (int tile = 0; tile < layer.tiles(); ++tile) {
    const TileTrace& trace = layer.traces[tile];
    const std::size_t begin = trace.entry_start[sample], count = trace.entry_start[sample + 1] - begin;
    const std::uint32_t first_id = tile * layer.width();
    for (std::size_t e = 0; e < count; ++e) {
      const std::uint8_t code = trace.codes[begin + e];
      const bool listed = (code & flag) != 0;
      std::uint32_t* to = listed ? &out.ids[place[rows[e]]] : &nowhere;  // an address is chosen without a branch
      *to = first_id + (code & kernels::kColumnBits);
      place[rows[e]] += listed;
    }
    rows += count;
  }
}

/// Concatenates the tiles' entries that carry `flag`, row by row; `starts` are those entries' places per sample in each
/// tile.
void merge(const LayerState& layer, std::uint8_t flag, std::vector<std::size_t> TileTrace::*starts,
           const PassContext& context, SpikeLists& out) {
  std::vector<std::uint32_t> base(context.samples + 1, 0);
  for (const TileTrace& trace : layer.traces) {
    for (int sample = 0; sample <= context.samples; ++sample)
      base[sample] += static_cast<std::uint32_t>((trace.*starts)[sample]);
  }
  out.offsets.resize(context.rows() + 1);
  out.offsets.back() = base.back();
  out.ids.resize(base.back());
  context.team->for_each(context.samples, [&](std::size_t sample, int worker) {
    merge_sample(layer, flag, static_cast<int>(sample), context.steps, base[sample], (*context.scratch)[worker], out);
  });
}

}  // namespace

void merge_spikes(LayerState& layer, const PassContext& context) {
  merge(layer, kernels::kSpiked, &TileTrace::spike_start, context, layer.spikes);
}

void merge_active(const LayerState& layer, const PassContext& context, SpikeLists& out) {
  merge(layer, kernels::kActive, &TileTrace::active_start, context, out);
}

}  // namespace spikeloom
