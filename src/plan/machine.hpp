// What the machine is: its cores and caches, and which of them this process may use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spikeloom {

struct CoreSeat {
  int cpu = 0;      // the operating system's number of the logical CPU
  int core = 0;     // physical core; two seats with the same one are hardware threads of it
  int package = 0;  // socket
  int numa_node = 0;
};

struct Machine {
  std::string cpu = "unknown";
  int packages = 1;
  int cores = 1;  // physical, of the whole machine
  int numa_nodes = 1;
  std::size_t l1_bytes = 0;  // data; of one core; 0 where the system doesn't say
  std::size_t l2_bytes = 0;
  std::size_t l3_bytes = 0;
  int l3_shared_by = 1;         // logical CPUs behind one L3
  std::vector<CoreSeat> seats;  // logical CPUs that this process may use, in the order in which workers take them
};

/// As hwloc sees it, restricted to the CPUs that this process may use. Where hwloc sees nothing, one core of a machine
/// without caches is returned.
Machine describe_machine();

}  // namespace spikeloom
