// What the planner makes of a configuration, and what that will cost on this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <spikeloom/configuration.hpp>
#include "core/progress.hpp"
#include "plan/cost.hpp"
#include "plan/figures.hpp"
#include "plan/machine.hpp"
#include "plan/memory.hpp"
#include "plan/plan.hpp"

namespace spikeloom {

struct PlanRequest {
  std::optional<double> activity;        // of every hidden layer, spikes per neuron and step
  std::optional<double> input_activity;  // instead of the data's
  bool read_data = true;                 // look at data.train for the input's activity and size, if it is there
  bool measure_anew = false;             // the machine, whatever was kept of it
};

struct PlanReport {
  Machine machine;
  MachineFigures figures;
  NetworkSpec network;
  Plan plan;
  Workload work;
  Prediction prediction;
  std::vector<double> dense_from;    // per layer: predicted input activity from which products are faster; 1: never
  std::vector<double> tile_balance;  // per layer: mean over busiest worker's tiles
  MemoryUse memory;
  double limit_ns = 0.0;             // rough_limit_ns
  std::vector<std::string> assumed;  // figures that nobody gave or measured, with the reason
};

/// Throws UserError for a configuration whose input size is unknown, and whatever reading its data throws.
PlanReport explain_plan(Configuration configuration, const PlanRequest& request, ProgressListener& listener);

}  // namespace spikeloom
