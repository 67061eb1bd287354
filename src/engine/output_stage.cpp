#include <algorithm>

#include "engine/passes.hpp"

namespace spikeloom {

void OutputStage::forward(const SpikeRows& input, const PassContext& context) {
  if (context.first_step == 0) {
    chunks_.clear();
    trace_.reserve_discard(static_cast<std::size_t>(context.samples) * context.recording_steps * last_->stride());
  }
  chunks_.push_back(context.chunk());
  context.team->for_each(context.samples, [&](std::size_t sample, int worker) {
    forward_sample(input, static_cast<int>(sample), context, (*context.scratch)[worker]);
  });
}

float* OutputStage::rows_of(StepRange chunk, int sample, const PassContext& context) {
  return trace_.data() +
         (static_cast<std::size_t>(context.samples) * chunk.first + static_cast<std::size_t>(sample) * chunk.size()) *
             last_->stride();
}

void OutputStage::forward_sample(const SpikeRows& input, int sample, const PassContext& context,
                                 WorkerScratch& scratch) {
  float* out = rows_of(context.chunk(), sample, context);
  const auto forward_tiles = [&](LayerState& layer, float* membranes) {
    for (int tile = 0; tile < layer.tiles(); ++tile) {
      kernels::forward_membrane(layer.width(), layer.input_of_sample(tile, input, sample, context.steps),
                                layer.constants(tile), context.steps, membranes + tile * layer.width(), layer.stride(),
                                layer.carried.after(tile, sample));
    }
  };
  if (!hidden_) return forward_tiles(*last_, out);

  scratch.dense_input.reserve_discard(static_cast<std::size_t>(context.steps) * hidden_->stride());
  forward_tiles(*hidden_, scratch.dense_input.data());
  const int width = last_->width();
  scratch.currents.reserve_discard(static_cast<std::size_t>(context.steps) * width);
  scratch.partials.reserve_discard(width);
  std::fill_n(scratch.partials.data(), width, 0.0f);  // the bias is added by the neuron's own step
  for (int tile = 0; tile < last_->tiles(); ++tile) {
    kernels::linear_rows(width, scratch.dense_input.data(), hidden_->stride(), hidden_->size(), last_->weights(tile),
                         scratch.partials.data(), context.steps, scratch.currents.data(), width);
    kernels::TileInput from;
    from.bias = last_->bias(tile);
    from.currents = scratch.currents.data();
    from.current_stride = width;
    kernels::forward_membrane(width, from, last_->constants(tile), context.steps, out + tile * width, last_->stride());
  }
}

std::vector<SampleResult> OutputStage::evaluate(const std::vector<int>& labels, const ReadoutLoss& loss, bool train,
                                                const PassContext& context) {
  const int stride = last_->stride();
  const std::size_t sample_floats = static_cast<std::size_t>(context.recording_steps) * stride;
  std::vector<SampleResult> results(context.samples);
  context.team->for_each(context.samples, [&](std::size_t s, int worker) {
    const int sample = static_cast<int>(s);
    WorkerScratch& scratch = (*context.scratch)[worker];
    scratch.outputs.reserve_discard(sample_floats);
    for (const StepRange& chunk : chunks_) {
      std::copy_n(rows_of(chunk, sample, context), static_cast<std::size_t>(chunk.size()) * stride,
                  scratch.outputs.data() + static_cast<std::size_t>(chunk.first) * stride);
    }
    float* gradient = nullptr;
    if (train) {
      scratch.output_gradient.reserve_discard(sample_floats);
      gradient = scratch.output_gradient.data();
      std::fill_n(gradient, sample_floats, 0.0f);
    }
    results[sample] = loss.evaluate_membrane(scratch.outputs.data(), gradient, context.recording_steps, last_->size(),
                                             stride, labels[sample], 1.0 / context.samples);
    for (std::size_t i = 0; train && i < chunks_.size(); ++i) {
      std::copy_n(gradient + static_cast<std::size_t>(chunks_[i].first) * stride,
                  static_cast<std::size_t>(chunks_[i].size()) * stride, rows_of(chunks_[i], sample, context));
    }
  });
  return results;
}

void OutputStage::backward(const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                           const PassContext& context) {
  const int stride = last_->stride();
  bias_gradients_.reserve_discard(static_cast<std::size_t>(context.samples) * stride);
  InputSources* spiking_below = hidden_ ? nullptr : below;
  if (spiking_below) spiking_below->prepare_gradient();
  context.team->for_each(context.samples, [&](std::size_t s, int worker) {
    const int sample = static_cast<int>(s);
    WorkerScratch& scratch = (*context.scratch)[worker];
    float* rows = rows_of(context.chunk(), sample, context);
    float* bias_gradient = bias_gradients_.data() + static_cast<std::ptrdiff_t>(sample) * stride;
    std::fill_n(bias_gradient, stride, 0.0f);
    for (int tile = 0; tile < last_->tiles(); ++tile) {
      kernels::backward_membrane(last_->width(), last_->constants(tile), context.steps, rows + tile * last_->width(),
                                 stride, bias_gradient + tile * last_->width());
    }
    if (spiking_below) give_gradient(rows, *spiking_below, sample, context, scratch);
  });
  for (int c = 0; c < stride; ++c) {
    double sum = 0.0;  // residuals of right and wrong classes cancel
    for (int sample = 0; sample < context.samples; ++sample)
      sum += static_cast<double>(bias_gradients_[static_cast<std::size_t>(sample) * stride + c]);
    last_->bias_gradient(0)[c] = static_cast<float>(sum);
  }
  if (hidden_) {
    backward_hidden(input, below, rule, context);
  } else {
    weight_gradients(input, rule, context);
  }
}

void OutputStage::give_gradient(const float* rows, const InputSources& below, int sample, const PassContext& context,
                                WorkerScratch& scratch) const {
  const SpikeLists& active = below.active();
  const std::uint32_t* offsets = active.offsets.data() + static_cast<std::size_t>(sample) * context.steps;
  const std::size_t events = offsets[context.steps] - offsets[0];
  scratch.partials.reserve_discard(events * (last_->tiles() + 1));
  float* sum = scratch.partials.data() + events * last_->tiles();
  std::vector<const float*> parts;
  for (int tile = 0; tile < last_->tiles(); ++tile) {
    float* part = scratch.partials.data() + events * tile;
    kernels::input_gradient(last_->width(), last_->weights(tile), rows + tile * last_->width(), last_->stride(),
                            context.steps, offsets, active.ids.data(), part);
    parts.push_back(part);
  }
  kernels::add_in_order(parts, events, sum);
  below.distribute(sample, context.steps, sum, scratch);
}

void OutputStage::weight_gradients(const SpikeRows& input, const UpdateRule& rule, const PassContext& context) {
  const int range_size = std::max(1, context.plan->delta_rows / context.steps);
  transpose_events(input, context.steps, ranges_of({0, context.samples}, range_size), *context.team,
                   context.shared->transposed);
  last_->kept_gradient(0);
  // The layer has one tile or few: workers share it by ranges of inputs instead, whose sums are as independent as tiles
  // are.
  constexpr int kIdsPerItem = 64;
  const int ranges = (input.neurons + kIdsPerItem - 1) / kIdsPerItem;
  context.team->for_each(ranges, [&](std::size_t i, int) {
    const int first = static_cast<int>(i) * kIdsPerItem, end = std::min(first + kIdsPerItem, input.neurons);
    for (int tile = 0; tile < last_->tiles(); ++tile) {
      float* gradient = last_->kept_gradient(tile);
      for (const TransposedEvents& events : context.shared->transposed) {
        const float* rows = rows_of(context.chunk(), events.samples.first, context) + tile * last_->width();
        kernels::weight_gradient(
            last_->width(), events.starts.data(), events.event_rows.data(), first, end, rows, last_->stride(),
            events.samples.first == 0 ? kernels::Gradient::start : kernels::Gradient::add, gradient);
      }
      scale_by(input.value, gradient + static_cast<std::ptrdiff_t>(first) * last_->width(),
               static_cast<std::size_t>(end - first) * last_->width());
    }
  });
  if (!rule.update) return;
  for (int tile = 0; tile < last_->tiles(); ++tile)
    update_tile(*last_, tile, kept_gradients(*last_, tile), rule, (*context.scratch)[0]);
}

void OutputStage::backward_hidden(const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                                  const PassContext& context) {
  const int width = hidden_->width(), outputs = last_->size();
  weights_by_output_.reserve_discard(static_cast<std::size_t>(hidden_->tiles()) * outputs * width);
  weights_by_output_.fill(0.0f);
  for (int neuron = 0; neuron < hidden_->size(); ++neuron) {
    for (int output = 0; output < outputs; ++output) {
      weights_by_output_[(static_cast<std::size_t>(neuron / width) * outputs + output) * width + neuron % width] =
          last_->weights(output / last_->width())[neuron * last_->width() + output % last_->width()];
    }
  }
  for (int tile = 0; tile < last_->tiles(); ++tile) std::fill_n(last_->kept_gradient(tile), last_->tile_floats(), 0.0f);
  const GradientSource source{last_, rows_of(context.chunk(), 0, context), weights_by_output_.data()};
  UpdateRule hidden_rule = rule;
  hidden_rule.layer = rule.layer - 1;
  backward_sparse(*hidden_, input, below, source, hidden_rule, context);
  if (!rule.update) return;
  for (int tile = 0; tile < last_->tiles(); ++tile)
    update_tile(*last_, tile, kept_gradients(*last_, tile), rule, (*context.scratch)[0]);
}

}  // namespace spikeloom
