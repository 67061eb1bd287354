#include <algorithm>

#include "engine/passes.hpp"

namespace spikeloom {

void CountStage::forward(const PassContext& context) {
  const std::size_t size = last_->size();
  if (context.first_step == 0) counts_.assign(context.samples * size, 0);
  context.team->for_each(context.samples, [&](std::size_t sample, int) {
    const std::uint32_t* offsets = last_->spikes.offsets.data() + sample * context.steps;
    for (std::uint32_t e = offsets[0]; e < offsets[context.steps]; ++e) ++counts_[sample * size + last_->spikes.ids[e]];
  });
}

std::vector<SampleResult> CountStage::evaluate(const std::vector<int>& labels, const ReadoutLoss& loss, bool train,
                                               const PassContext& context) {
  const std::size_t size = last_->size();
  std::vector<SampleResult> results(context.samples);
  gradient_.assign(counts_.size(), 0.0f);
  context.team->for_each(context.samples, [&](std::size_t sample, int) {
    results[sample] =
        loss.evaluate_counts(counts_.data() + sample * size, train ? gradient_.data() + sample * size : nullptr,
                             context.recording_steps, last_->size(), labels[sample], 1.0 / context.samples);
  });
  return results;
}

void CountStage::backward(const PassContext& context) {
  prepare_spike_gradient(*last_);
  context.team->for_each(context.samples, [&](std::size_t sample, int worker) {
    const std::uint32_t* offsets = last_->active.offsets.data() + sample * context.steps;
    const std::uint32_t begin = offsets[0], end = offsets[context.steps];
    WorkerScratch& own = (*context.scratch)[worker];
    own.partials.reserve_discard(end - begin);
    for (std::uint32_t e = begin; e < end; ++e)
      own.partials[e - begin] = gradient_[sample * last_->size() + last_->active.ids[e]];
    distribute_to_tiles(*last_, static_cast<int>(sample), context.steps, own.partials.data(), own);
  });
}

}  // namespace spikeloom
