// Clock, read bandwidth of every level of memory, and matrix products.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/aligned_buffer.hpp"
#include "core/random.hpp"
#include "engine/blas.hpp"
#include "kernels/read_memory.hpp"
#include "train/measure/parts.hpp"
#include "train/measure/timing.hpp"

namespace spikeloom::measure {
namespace {

constexpr std::size_t kRowBytes = 64 * sizeof(float);
constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Additions that wait for each other take one cycle each on every CPU that we know.
double clock_ghz() {
  constexpr int kAdditions = 100'000;
  std::uint64_t value = 1, step = 3;
  const double ns = best_ns([&] {
    for (int i = 0; i < kAdditions / 8; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        value += step;
        asm volatile("" : "+r"(value), "+r"(step));
      }
    }
  });
  return kAdditions / ns;
}

struct Sizes {
  std::size_t l1, l2, l3, dram;  // bytes that a core reads, in whole rows
};

/// Half of L1 and of L2; well beyond L2 but far from the whole L3, which others may share; and beyond L3, as far as
/// memory allows.
Sizes sizes_of(const Machine& machine) {
  const auto rows = [](std::size_t bytes) { return std::max<std::size_t>(bytes / kRowBytes, 64) * kRowBytes; };
  const std::size_t l1 = machine.l1_bytes ? machine.l1_bytes : 32 * 1024;
  const std::size_t l2 = machine.l2_bytes ? machine.l2_bytes : kMiB;
  const std::size_t l3 = machine.l3_bytes ? machine.l3_bytes : 8 * l2;
  return {rows(l1 / 2), rows(l2 / 2), rows(std::clamp(l3 / 4, 2 * l2, 8 * l2)),
          rows(std::clamp(2 * l3, 64 * kMiB, 640 * kMiB))};
}

double in_order(const float* from, std::size_t bytes) {
  const int passes = static_cast<int>(std::max<std::size_t>(1, 256 * 1024 / bytes));
  const double ns = best_ns([&] {
    for (int pass = 0; pass < passes; ++pass) keep(kernels::read_in_order(from, bytes / sizeof(float)));
  });
  return static_cast<double>(passes) * static_cast<double>(bytes) / ns;
}

/// Rows of 256 bytes in random order: what a row-add of a tile of 64 neurons reads.
double random_rows(const float* from, std::size_t bytes) {
  std::vector<std::uint32_t> ids = RandomStream(1, "rows").permutation(bytes / kRowBytes);
  const std::size_t count = std::min<std::size_t>(ids.size(), 100'000);
  const int passes = static_cast<int>(std::max<std::size_t>(1, 1000 / count));
  const double ns = best_ns([&] {
    for (int pass = 0; pass < passes; ++pass) keep(kernels::read_rows(from, ids.data(), count));
  });
  return static_cast<double>(passes) * static_cast<double>(count * kRowBytes) / ns;
}

/// All workers at once, each on `bytes` of its own: bytes per nanosecond together.
double all_in_order(WorkerTeam& team, std::size_t bytes) {
  std::vector<AlignedBuffer<float>> own(team.size());
  team.run([&](int worker) { own[worker] = AlignedBuffer<float>(bytes / sizeof(float)); });  // touched by its reader
  const double ns = best_wall_ns(
      [&] { team.run([&](int worker) { keep(kernels::read_in_order(own[worker].data(), own[worker].size())); }); });
  return static_cast<double>(bytes) * team.size() / ns;
}

struct Shape {
  bool transpose_a, transpose_b;
  int m, n, k;
};

double product_speed(const Shape& s) {
  AlignedBuffer<float> a(static_cast<std::size_t>(s.m) * s.k), b(static_cast<std::size_t>(s.k) * s.n);
  AlignedBuffer<float> c(static_cast<std::size_t>(s.m) * s.n);
  a.fill(0.5f), b.fill(0.25f);
  const double ns = best_ns([&] {
    matrix_product(s.transpose_a, s.transpose_b, s.m, s.n, s.k, a.data(), s.transpose_a ? s.m : s.k, b.data(),
                   s.transpose_b ? s.k : s.n, 0.0f, c.data(), s.n);
  });
  return 2.0 * s.m * s.n * s.k / ns;
}

}  // namespace

void measure_memory(const Machine& machine, WorkerTeam& team, MachineFigures& figures) {
  figures.clock_ghz = clock_ghz();
  const Sizes sizes = sizes_of(machine);
  {
    const AlignedBuffer<float> memory(sizes.dram / sizeof(float));
    figures.l1_bandwidth = in_order(memory.data(), sizes.l1);
    figures.l2_bandwidth = in_order(memory.data(), sizes.l2);
    figures.l3_bandwidth = in_order(memory.data(), sizes.l3);
    figures.dram_bandwidth = in_order(memory.data(), sizes.dram);
    figures.l2_row_bandwidth = random_rows(memory.data(), sizes.l2);
    figures.l3_row_bandwidth = random_rows(memory.data(), sizes.l3);
    figures.dram_row_bandwidth = random_rows(memory.data(), sizes.dram);
    for (const std::size_t bytes : {sizes.l2, sizes.l3, std::min(4 * sizes.l3, sizes.dram / 2), sizes.dram}) {
      if (!figures.row_ns.x.empty() && static_cast<double>(bytes) <= figures.row_ns.x.back()) continue;
      figures.row_ns.x.push_back(static_cast<double>(bytes));
      figures.row_ns.y.push_back(static_cast<double>(kRowBytes) / random_rows(memory.data(), bytes));
    }
  }
  figures.l3_bandwidth_all = all_in_order(team, sizes.l3 / team.size());
  figures.dram_bandwidth_all = all_in_order(team, sizes.dram / team.size());
}

void measure_products(MachineFigures& figures) {
  // The dense mode's shapes: 2048 rows, blocks of 256 columns.
  figures.gemm_forward = product_speed({false, false, 2048, 256, 1024});
  figures.gemm_weight_gradient = product_speed({true, false, 1024, 256, 2048});
  figures.gemm_input_gradient = product_speed({false, true, 2048, 256, 1024});
  figures.gemm_peak =
      std::max({figures.gemm_forward, figures.gemm_weight_gradient, figures.gemm_input_gradient,
                product_speed({false, false, 512, 512, 512}), product_speed({false, false, 1024, 1024, 1024})});
}

}  // namespace spikeloom::measure
