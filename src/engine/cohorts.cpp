#include "engine/cohorts.hpp"

#include <numeric>

namespace spikeloom {

int cohort_count(const LayerState& layer, SampleRange group) {
  return layer.step_schedule() == StepSchedule::sample_major ? group.size() : 1;
}

SampleRange cohort_samples(const LayerState& layer, SampleRange group, int number) {
  if (layer.step_schedule() == StepSchedule::step_major) return group;
  return {group.first + number, group.first + number + 1};
}

void for_each_cohort(const LayerState& layer, SampleRange group, const PassContext& context,
                     const std::function<void(SampleRange, StepExchange&)>& prepare,
                     const std::function<void(const Cohort&)>& advance) {
  if (layer.step_schedule() == StepSchedule::sample_major) {
    std::vector<int> all(layer.tiles());
    std::iota(all.begin(), all.end(), 0);
    context.team->for_each(group.size(), [&](std::size_t number, int worker) {
      WorkerScratch& scratch = (*context.scratch)[worker];
      const SampleRange samples = cohort_samples(layer, group, static_cast<int>(number));
      prepare(samples, scratch.step.exchange);
      advance({samples, static_cast<int>(number), all, &scratch.step.exchange, &scratch, nullptr});
    });
    return;
  }
  StepExchange& exchange = context.shared->exchange;
  prepare(group, exchange);
  context.team->run([&](int worker) {
    std::vector<int> own;
    for (int tile = 0; tile < layer.tiles(); ++tile) {
      if (layer.owner(tile) == worker) own.push_back(tile);
    }
    advance({group, 0, own, &exchange, &(*context.scratch)[worker], context.team});
  });
}

}  // namespace spikeloom
