// Measures what the cost model and `spikeloom bench kernels` compare with. Takes some seconds.
#pragma once

#include "core/worker_team.hpp"
#include "plan/figures.hpp"
#include "plan/machine.hpp"

namespace spikeloom {

/// Memory, matrix products and kernels of this machine as they are now; `team` should have all cores that the process
/// may use. Throws ResourceError if OpenBLAS can't be loaded.
MachineFigures measure_machine(const Machine& machine, WorkerTeam& team);

/// The figures kept for this machine and program, or, without such or with `anew`, measured and kept.
MachineFigures machine_figures(const Machine& machine, bool anew);

}  // namespace spikeloom
