#include "engine/cohorts.hpp"

namespace spikeloom {
namespace {

/// Of each layer, the tiles of one worker, or all (-1).
std::vector<std::vector<int>> tiles_of(const Loop& loop, int worker) {
  std::vector<std::vector<int>> tiles(loop.size());
  for (int m = 0; m < loop.size(); ++m) {
    for (int tile = 0; tile < loop.layer(m).tiles(); ++tile) {
      if (worker < 0 || loop.layer(m).owner(tile) == worker) tiles[m].push_back(tile);
    }
  }
  return tiles;
}

}  // namespace

int cohort_count(const Loop& loop, SampleRange group) {
  return loop.schedule() == StepSchedule::sample_major ? group.size() : 1;
}

SampleRange cohort_samples(const Loop& loop, SampleRange group, int number) {
  if (loop.schedule() == StepSchedule::step_major) return group;
  return {group.first + number, group.first + number + 1};
}

void for_each_cohort(const Loop& loop, SampleRange group, const PassContext& context,
                     const std::function<void(SampleRange, std::vector<StepExchange>&)>& prepare,
                     const std::function<void(const Cohort&)>& advance) {
  const auto exchanges_of = [&](std::vector<StepExchange>& exchanges) -> std::vector<StepExchange>& {
    if (exchanges.size() < static_cast<std::size_t>(loop.exchanges())) exchanges.resize(loop.exchanges());
    return exchanges;
  };
  const auto steps_of = [&](WorkerScratch& scratch) {
    if (scratch.steps.size() < static_cast<std::size_t>(loop.size())) scratch.steps.resize(loop.size());
  };
  if (loop.schedule() == StepSchedule::sample_major) {
    const std::vector<std::vector<int>> all = tiles_of(loop, -1);
    context.team->for_each(group.size(), [&](std::size_t number, int worker) {
      WorkerScratch& scratch = (*context.scratch)[worker];
      steps_of(scratch);
      std::vector<StepExchange>& exchanges = exchanges_of(scratch.exchanges);
      const SampleRange samples = cohort_samples(loop, group, static_cast<int>(number));
      prepare(samples, exchanges);
      advance({samples, static_cast<int>(number), all, &exchanges, &scratch, nullptr});
    });
    return;
  }
  std::vector<StepExchange>& exchanges = exchanges_of(context.shared->exchanges);
  prepare(group, exchanges);
  context.team->run([&](int worker) {
    WorkerScratch& scratch = (*context.scratch)[worker];
    steps_of(scratch);
    const std::vector<std::vector<int>> own = tiles_of(loop, worker);
    advance({group, 0, own, &exchanges, &scratch, context.team});
  });
}

}  // namespace spikeloom
