#include "plan/machine.hpp"

#include <hwloc.h>

#include <fstream>
#include <memory>
#include <type_traits>

#include "core/worker_team.hpp"

namespace spikeloom {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) return nullptr;
  return topology;
}

/// The CPU's name. hwloc has it as an attribute of the package on most systems, the kernel on the rest.
std::string cpu_name(hwloc_topology_t topology) {
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
  const char* name = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : nullptr;
  if (name && *name) return name;
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

int count_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int count = hwloc_get_nbobjs_by_type(topology, type);
  return count > 0 ? count : 1;
}

int index_above(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t from) {
  const hwloc_obj_t above = hwloc_get_ancestor_obj_by_type(topology, type, from);
  return above ? static_cast<int>(above->logical_index) : 0;
}

int numa_node_of(hwloc_topology_t topology, hwloc_obj_t seat) {
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node));) {
    if (hwloc_bitmap_isset(node->cpuset, seat->os_index)) return static_cast<int>(node->logical_index);
  }
  return 0;
}

void describe_caches(hwloc_obj_t seat, Machine& machine) {
  for (hwloc_obj_t above = seat; above; above = above->parent) {
    if (above->type == HWLOC_OBJ_L1CACHE) machine.l1_bytes = above->attr->cache.size;
    if (above->type == HWLOC_OBJ_L2CACHE) machine.l2_bytes = above->attr->cache.size;
    if (above->type != HWLOC_OBJ_L3CACHE) continue;
    machine.l3_bytes = above->attr->cache.size;
    machine.l3_shared_by = hwloc_bitmap_weight(above->cpuset);
  }
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  const Topology owner = load_topology();
  hwloc_topology_t topology = owner.get();
  if (topology) {
    machine.cpu = cpu_name(topology);
    machine.packages = count_of(topology, HWLOC_OBJ_PACKAGE);
    machine.cores = count_of(topology, HWLOC_OBJ_CORE);
    machine.numa_nodes = count_of(topology, HWLOC_OBJ_NUMANODE);
    // The worker team takes the allowed CPUs in ascending order of the operating system's numbers.
    for (const int cpu : available_cpus()) {
      const hwloc_obj_t seat = hwloc_get_pu_obj_by_os_index(topology, static_cast<unsigned>(cpu));
      if (!seat) continue;
      if (machine.seats.empty()) describe_caches(seat, machine);
      machine.seats.push_back({cpu, index_above(topology, HWLOC_OBJ_CORE, seat),
                               index_above(topology, HWLOC_OBJ_PACKAGE, seat), numa_node_of(topology, seat)});
    }
  }
  if (machine.seats.empty()) machine.seats.emplace_back();
  return machine;
}

}  // namespace spikeloom
