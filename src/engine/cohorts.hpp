// The two schedules of a loop: which samples advance together on which tiles, and where workers meet.
//
//   sample_major   a sample is a cohort: its worker takes it through all steps, on all tiles in each
//   step_major     a group of samples is a cohort: every worker takes it through all steps on its own tiles, and all
//                  meet after each step of each layer
//
// What is computed, and in which order it is summed, is the same; so are the bits.
#pragma once

#include <functional>
#include <span>

#include "engine/passes.hpp"

namespace spikeloom {

/// Samples that advance together, as one worker sees them.
struct Cohort {
  SampleRange samples;
  int number = 0;                           // of the cohort in its group
  std::span<const std::vector<int>> tiles;  // of each layer of the loop: the worker's
  std::vector<StepExchange>* exchanges = nullptr;
  WorkerScratch* scratch = nullptr;
  WorkerTeam* team = nullptr;  // null: the worker is alone with the cohort

  std::size_t size() const { return static_cast<std::size_t>(samples.size()); }
  /// Closes a step of a layer. False: another worker has failed, and nothing that follows counts.
  bool meet() const { return !team || team->meet(); }
};

/// How many cohorts a group makes, and the samples of each.
int cohort_count(const Loop& loop, SampleRange group);
SampleRange cohort_samples(const Loop& loop, SampleRange group, int number);

/// Calls `prepare` (room in the exchanges) and then `advance` for every cohort of the group: `advance` by every worker
/// that has a part in it.
void for_each_cohort(const Loop& loop, SampleRange group, const PassContext& context,
                     const std::function<void(SampleRange samples, std::vector<StepExchange>& exchanges)>& prepare,
                     const std::function<void(const Cohort&)>& advance);

}  // namespace spikeloom
