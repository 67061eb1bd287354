#include "machine_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace spikeloom {
namespace {

using Json = nlohmann::ordered_json;

Json cores_as_json(const Machine& machine) {
  Json cores = Json::array();
  for (const CoreSeat& seat : machine.seats)
    cores.push_back({{"cpu", seat.cpu}, {"core", seat.core}, {"package", seat.package}, {"numa_node", seat.numa_node}});
  return cores;
}

std::string cores_text(const Machine& machine) {
  std::string cpus;
  for (const CoreSeat& seat : machine.seats) cpus += fmt::format("{}{}", cpus.empty() ? "" : ", ", seat.cpu);
  return fmt::format("{} of {} cores usable (CPU {}), {} package{}, {} NUMA node{}", machine.seats.size(),
                     machine.cores, cpus, machine.packages, machine.packages == 1 ? "" : "s", machine.numa_nodes,
                     machine.numa_nodes == 1 ? "" : "s");
}

}  // namespace

std::string bytes_text(double bytes) {
  if (bytes >= 1024.0 * 1024.0) return fmt::format("{:.4g} MiB", bytes / 1024.0 / 1024.0);
  return fmt::format("{:.4g} KiB", bytes / 1024.0);
}

Json machine_as_json(const Machine& machine, const MachineFigures* f) {
  Json object{{"cpu", machine.cpu},
              {"packages", machine.packages},
              {"cores", machine.cores},
              {"numa_nodes", machine.numa_nodes},
              {"usable", cores_as_json(machine)},
              {"l1_bytes", machine.l1_bytes},
              {"l2_bytes", machine.l2_bytes},
              {"l3_bytes", machine.l3_bytes},
              {"l3_shared_by", machine.l3_shared_by}};
  if (!f) return object;
  object["instruction_set"] = f->instruction_set;
  object["clock_ghz"] = f->clock_ghz;
  object["bytes_per_ns"] = {{"l1", f->l1_bandwidth},
                            {"l2", f->l2_bandwidth},
                            {"l3", f->l3_bandwidth},
                            {"dram", f->dram_bandwidth},
                            {"l2_rows", f->l2_row_bandwidth},
                            {"l3_rows", f->l3_row_bandwidth},
                            {"dram_rows", f->dram_row_bandwidth},
                            {"l3_all_workers", f->l3_bandwidth_all},
                            {"dram_all_workers", f->dram_bandwidth_all}};
  object["gemm_gflops"] = f->gemm_peak;
  object["workers_measured"] = f->workers;
  object["barrier_ns"] = f->barrier_ns;
  return object;
}

std::vector<std::pair<std::string, std::string>> machine_rows(const Machine& machine, const MachineFigures* f) {
  std::vector<std::pair<std::string, std::string>> rows{
      {"cpu", machine.cpu},
      {"cores", cores_text(machine)},
      {"caches", fmt::format("L1 {}, L2 {} a core, L3 {} for {}", bytes_text(static_cast<double>(machine.l1_bytes)),
                             bytes_text(static_cast<double>(machine.l2_bytes)),
                             bytes_text(static_cast<double>(machine.l3_bytes)), machine.l3_shared_by)}};
  if (!f) return rows;
  rows.emplace_back("kernels", fmt::format("{}, {:.2f} GHz", f->instruction_set, f->clock_ghz));
  rows.emplace_back("read in order",
                    fmt::format("L1 {:.0f}, L2 {:.0f}, L3 {:.1f}, DRAM {:.1f} bytes/ns a core; {} together: L3 {:.1f}, "
                                "DRAM {:.1f}",
                                f->l1_bandwidth, f->l2_bandwidth, f->l3_bandwidth, f->dram_bandwidth,
                                f->workers == 1 ? "1 worker" : fmt::format("{} workers", f->workers),
                                f->l3_bandwidth_all, f->dram_bandwidth_all));
  rows.emplace_back("read rows", fmt::format("of 256 bytes at random: L2 {:.0f}, L3 {:.1f}, DRAM {:.1f} bytes/ns",
                                             f->l2_row_bandwidth, f->l3_row_bandwidth, f->dram_row_bandwidth));
  rows.emplace_back("matrix products", fmt::format("{:.0f} GFLOP/s a core", f->gemm_peak));
  return rows;
}

}  // namespace spikeloom
