#include <algorithm>

#include "engine/passes.hpp"

namespace spikeloom {

void forward_sample(const LayerState& layer, int tile, const kernels::TileInput& input, Listing listing, int steps,
                    WorkerScratch& scratch, TileTrace& trace, float* carry) {
  const int width = layer.width();
  const std::size_t room = static_cast<std::size_t>(steps) * width;
  scratch.codes.reserve_discard(room);
  scratch.membranes.reserve_discard(room);
  const std::size_t samples_before = trace.entry_start.size() - 1;
  const kernels::TraceOut out{trace.counts.data() + samples_before * steps, scratch.codes.data(),
                              scratch.membranes.data(), carry};
  const std::size_t entries = layer.kernels().forward(width, input, layer.constants(tile, listing), steps, out);
  append_entries(layer, tile, listing, scratch.codes.data(), scratch.membranes.data(), entries, trace);
}

namespace {

/// h of entries with such potentials.
void derivatives_of(const LayerState& layer, int tile, const std::uint8_t* codes, const float* potentials,
                    std::size_t entries, float* derivatives) {
  const SurrogateSpec& surrogate = layer.spec().surrogate;
  const float* thresholds = layer.thresholds(tile);
  if (layer.same_threshold())
    return kernels::surrogate_derivatives(surrogate, thresholds[0], potentials, entries, derivatives);
  for (std::size_t e = 0; e < entries; ++e)
    derivatives[e] = potentials[e] - thresholds[codes[e] & kernels::kColumnBits];
  kernels::surrogate_derivatives(surrogate, 0.0f, derivatives, entries, derivatives);
}

}  // namespace

void append_entries(const LayerState& layer, int tile, Listing listing, const std::uint8_t* codes,
                    const float* membranes, std::size_t entries, TileTrace& trace) {
  std::size_t active = 0, spikes = 0;
  for (std::size_t e = 0; e < entries; ++e) {
    const std::uint8_t code = codes[e];
    const std::uint32_t spiked = (code & kernels::kSpiked) != 0;
    active += (code & kernels::kActive) != 0;
    spikes += spiked;
    trace.spike_counts[code & kernels::kColumnBits] += spiked;
  }
  const std::size_t start = trace.entry_start.back();
  trace.codes.resize(start + entries + kernels::kCodePadding);
  std::copy_n(codes, entries, trace.codes.data() + start);
  if (listing == Listing::active) {
    trace.derivatives.resize(start + entries);
    derivatives_of(layer, tile, codes, membranes, entries, trace.derivatives.data() + start);
  }
  if (listing == Listing::everything || (listing == Listing::active && layer.spec().reset_gradient)) {
    trace.membranes.insert(trace.membranes.end(), membranes, membranes + entries);
  }
  trace.entry_start.push_back(start + entries);
  trace.active_start.push_back(trace.active_start.back() + active);
  trace.spike_start.push_back(trace.spike_start.back() + spikes);
}

namespace {

/// Appends the parts of shared tiles to their first ones.
void join_parts(LayerState& layer, const PassContext& context) {
  context.team->run([&](int worker) {
    for (std::size_t i = 0; i < layer.shares().size(); ++i) {
      const TileShare& share = layer.shares()[i];
      if (share.first == 0 || layer.owner(share.tile) != worker) continue;
      const std::size_t first_row =
          static_cast<std::size_t>(samples_of(share, {0, context.samples}).first) * context.steps;
      layer.traces[share.tile].append(layer.part_traces[i], first_row);
    }
  });
}

}  // namespace

void forward_sparse(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context) {
  context.team->run([&](int worker) {
    for (std::size_t i = 0; i < layer.shares().size(); ++i) {
      const TileShare& share = layer.shares()[i];
      if (share.worker != worker) continue;
      const SampleRange samples = samples_of(share, {0, context.samples});
      TileTrace& trace = share.first == 0 ? layer.traces[share.tile] : layer.part_traces[i];
      trace.clear(share.first == 0 ? context.rows() : static_cast<std::size_t>(samples.size()) * context.steps,
                  layer.width());
      for (int sample = samples.first; sample < samples.last; ++sample) {
        forward_sample(layer, share.tile, layer.input_of_sample(share.tile, input, sample, context.steps), listing,
                       context.steps, (*context.scratch)[worker], trace, layer.carried.after(share.tile, sample));
      }
    }
  });
  if (layer.shared_tiles() > 0) join_parts(layer, context);
  merge_spikes(layer, context);
}

namespace {

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
    std::vector<kernels::TileList>& lists = (*context.scratch)[worker].tile_lists;
    lists.clear();
    const std::size_t first_row = sample * context.steps;
    for (const TileTrace& trace : layer.traces)
      lists.push_back({trace.counts.data() + first_row, trace.codes.data() + trace.entry_start[sample]});
    kernels::merge_lists(lists, layer.width(), flag, context.steps, base[sample], base[sample + 1],
                         out.offsets.data() + first_row, out.ids.data());
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
