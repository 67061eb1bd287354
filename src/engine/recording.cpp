#include "engine/recording.hpp"

#include <algorithm>

namespace spikeloom {
namespace {

/// Of one tile and sample: (steps, size) rows of the record.
void copy_membranes(const LayerState& layer, int tile, int sample, int steps, float* out) {
  const TileTrace& trace = layer.traces[tile];
  std::size_t entry = trace.entry_start[sample];
  for (int step = 0; step < steps; ++step, out += layer.size()) {
    for (const std::size_t end = entry + trace.counts[static_cast<std::size_t>(sample) * steps + step]; entry < end;
         ++entry) {
      const int neuron = tile * layer.width() + (trace.codes[entry] & kernels::kColumnBits);
      if (neuron < layer.size()) out[neuron] = trace.membranes[entry];
    }
  }
}

}  // namespace

SpikeBatch recorded_spikes(const LayerState& layer, const SpikeBatch& batch) {
  SpikeBatch spikes;
  spikes.samples = batch.samples;
  spikes.steps = batch.steps;
  spikes.neurons = layer.size();
  spikes.offsets = layer.spikes.offsets;
  spikes.ids = layer.spikes.ids;
  spikes.labels = batch.labels;
  return spikes;
}

std::vector<float> recorded_membranes(const LayerState& layer, const PassContext& context) {
  std::vector<float> membranes(context.rows() * layer.size());
  for (int tile = 0; tile < layer.tiles(); ++tile) {
    for (int sample = 0; sample < context.samples; ++sample) {
      copy_membranes(layer, tile, sample, context.steps,
                     membranes.data() + static_cast<std::size_t>(sample) * context.steps * layer.size());
    }
  }
  return membranes;
}

std::vector<float> forward_membranes(LayerState& layer, const SpikeRows& input, bool input_current,
                                     const PassContext& context) {
  std::vector<float> membranes(context.rows() * layer.size());
  const AlignedBuffer<float> no_decay(layer.stride());
  context.team->for_each(context.samples, [&](std::size_t sample, int worker) {
    AlignedBuffer<float>& rows = (*context.scratch)[worker].dense_input;
    rows.reserve_discard(static_cast<std::size_t>(context.steps) * layer.width());
    for (int tile = 0; tile < layer.tiles(); ++tile) {
      kernels::TileConstants constants = layer.constants(tile);
      if (input_current) constants[NeuronConstant::decay] = no_decay.data();
      const kernels::TileInput from = layer.input_of(tile, input, sample * context.steps);
      kernels::forward_membrane(layer.width(), from, constants, context.steps, rows.data(), layer.width());
      const int columns = std::min(layer.width(), layer.size() - tile * layer.width());
      for (int step = 0; step < context.steps; ++step) {
        std::copy_n(rows.data() + static_cast<std::size_t>(step) * layer.width(), columns,
                    membranes.data() + (sample * context.steps + step) * layer.size() + tile * layer.width());
      }
    }
  });
  return membranes;
}

std::vector<float> linear_membranes(OutputStage& output_stage, const LayerState& layer, const SpikeRows& input,
                                    const PassContext& context) {
  output_stage.forward(input, context);
  std::vector<float> membranes(context.rows() * layer.size());
  for (std::size_t row = 0; row < context.rows(); ++row) {
    std::copy_n(output_stage.membranes() + row * layer.stride(), layer.size(), membranes.data() + row * layer.size());
  }
  return membranes;
}

}  // namespace spikeloom
