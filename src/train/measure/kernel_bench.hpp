// The hot kernels one by one, against what the machine's memory could give them.
#pragma once

#include <string>
#include <vector>

#include "plan/figures.hpp"
#include "plan/machine.hpp"

namespace spikeloom {

/// One kernel at one size, on one core; results were equal to a plain loop's before they were timed.
struct KernelTiming {
  std::string kernel;
  int inputs = 0;
  double activity = 0.0;         // input events per input and step
  double active_fraction = 0.0;  // active neurons below, likewise
  double rows = 0.0;             // (sample, step)
  double events = 0.0;           // row-adds, or dot products of the input gradient, or parameters
  double bytes = 0.0;            // that the kernel must read and write
  double ns = 0.0;
  std::string level;      // of memory where these bytes are: L2, L3 or DRAM
  double roofline = 0.0;  // read bandwidth of that level, bytes per nanosecond

  double bytes_per_ns() const { return bytes / ns; }
  double ns_per_event() const { return events > 0.0 ? ns / events : 0.0; }
  double ns_per_row() const { return rows > 0.0 ? ns / rows : 0.0; }
  double fraction() const { return bytes_per_ns() / roofline; }
};

/// Forward, delta recursion, weight gradient, input gradient and AdamW on a tile of 64 neurons with 256, 1024 and 2312
/// inputs at 1, 2 and 5 % activity, active set twice as large, 100 steps. Throws InternalError if a kernel's result is
/// wrong.
std::vector<KernelTiming> bench_kernels(const Machine& machine, const MachineFigures& figures);

}  // namespace spikeloom
