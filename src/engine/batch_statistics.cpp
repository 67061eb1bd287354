#include "engine/batch_statistics.hpp"

namespace spikeloom {
namespace {

/// Of the neurons of one tile, the first of which is `first`.
void count_neurons(const TileTrace& trace, std::size_t first, LayerStatistics& statistics) {
  for (std::size_t c = 0; c < trace.spike_counts.size() && first + c < statistics.spike_counts.size(); ++c)
    statistics.spike_counts[first + c] += trace.spike_counts[c];
  for (std::size_t e = 0; !statistics.were_active.empty() && e < trace.entry_start.back(); ++e) {
    if (trace.codes[e] & kernels::kActive) statistics.were_active[first + (trace.codes[e] & kernels::kColumnBits)] = 1;
  }
}

}  // namespace

std::uint64_t count_spikes(const LayerState& layer, LayerStatistics& statistics) {
  const std::uint64_t spikes = layer.spikes.ids.size();
  statistics.spikes += spikes;
  if (layer.recurrent()) statistics.synaptic_operations += spikes * layer.size();
  statistics.spike_counts.resize(layer.size());
  statistics.were_active.resize(layer.spec().rescue_active > 0.0 ? layer.size() : 0);
  std::uint64_t bytes = layer.spikes.bytes() + layer.outgoing.bytes();
  for (int tile = 0; tile < layer.tiles(); ++tile) {
    const TileTrace& trace = layer.traces[tile];
    statistics.active += trace.active_start.back();
    count_neurons(trace, static_cast<std::size_t>(tile) * layer.width(), statistics);
    bytes += trace.bytes();
  }
  return bytes;
}

void set_means(std::size_t rows, int neurons, LayerStatistics& statistics) {
  const double cells = static_cast<double>(rows) * neurons;
  statistics.activity = static_cast<double>(statistics.spikes) / cells;
  statistics.active_fraction = static_cast<double>(statistics.active) / cells;
}

void count_decisions(const std::vector<SampleResult>& samples, const std::vector<int>& labels, BatchResult& result) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    result.loss += samples[i].loss;
    result.losses.push_back(samples[i].loss);
    result.decisions.push_back(samples[i].decision);
    result.undecided_samples.push_back(samples[i].undecided);
    result.correct += samples[i].decision == labels[i];
    result.undecided += samples[i].undecided;
  }
}

}  // namespace spikeloom
