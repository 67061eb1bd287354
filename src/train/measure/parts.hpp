// The parts of measuring a machine; each fills its share of the figures.
#pragma once

#include "core/worker_team.hpp"
#include "plan/figures.hpp"
#include "plan/machine.hpp"

namespace spikeloom::measure {

void measure_memory(const Machine& machine, WorkerTeam& team, MachineFigures& figures);  // memory_speed.cpp
void measure_products(MachineFigures& figures);
void measure_tiles(const Machine& machine, MachineFigures& figures);                    // tile_costs.cpp
void measure_lists(MachineFigures& figures);                                            // list_costs.cpp
void measure_steps(const Machine& machine, WorkerTeam& team, MachineFigures& figures);  // step_costs.cpp

}  // namespace spikeloom::measure
