#include "plan/figures_file.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "data/durable_file.hpp"

namespace spikeloom {
namespace {

using Json = nlohmann::ordered_json;

// Raised when a figure is added or means something else.
constexpr int kFormat = 2;

void put(Json& out, const char* name, double value) { out[name] = value; }
void put(Json& out, const char* name, int value) { out[name] = value; }
void put(Json& out, const char* name, const std::string& value) { out[name] = value; }
void put(Json& out, const char* name, const Curve& curve) { out[name] = {{"x", curve.x}, {"y", curve.y}}; }

void check(double value) {
  if (!std::isfinite(value) || value < 0.0) throw std::runtime_error("a figure out of range");
}

void get(const Json& in, const char* name, double& value) { check(value = in.at(name).get<double>()); }
void get(const Json& in, const char* name, int& value) { value = in.at(name).get<int>(); }
void get(const Json& in, const char* name, std::string& value) { value = in.at(name).get<std::string>(); }
void get(const Json& in, const char* name, Curve& curve) {
  curve.x = in.at(name).at("x").get<std::vector<double>>();
  curve.y = in.at(name).at("y").get<std::vector<double>>();
  if (curve.x.empty() || curve.x.size() != curve.y.size()) throw std::runtime_error("a curve of no use");
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    check(curve.x[i]), check(curve.y[i]);
    if (i > 0 && curve.x[i] <= curve.x[i - 1]) throw std::runtime_error("a curve out of order");
  }
}

/// Calls `field(name, member)` for every figure: the one list that reading and writing share.
template <class Figures, class Field>
void each_figure(Figures& f, Field field) {
  field("cpu", f.cpu), field("instruction_set", f.instruction_set), field("workers", f.workers);
  field("clock_ghz", f.clock_ghz);
  field("l1_bandwidth", f.l1_bandwidth), field("l2_bandwidth", f.l2_bandwidth);
  field("l3_bandwidth", f.l3_bandwidth), field("dram_bandwidth", f.dram_bandwidth);
  field("l2_row_bandwidth", f.l2_row_bandwidth), field("l3_row_bandwidth", f.l3_row_bandwidth);
  field("dram_row_bandwidth", f.dram_row_bandwidth);
  field("row_ns", f.row_ns), field("l3_bandwidth_all", f.l3_bandwidth_all),
      field("dram_bandwidth_all", f.dram_bandwidth_all);
  field("gemm_peak", f.gemm_peak), field("gemm_forward", f.gemm_forward);
  field("gemm_weight_gradient", f.gemm_weight_gradient), field("gemm_input_gradient", f.gemm_input_gradient);
  field("merge_row_ns", f.merge_row_ns), field("merge_entry_ns", f.merge_entry_ns);
  field("transpose_event_ns", f.transpose_event_ns), field("transpose_input_ns", f.transpose_input_ns);
  field("distribute_event_ns", f.distribute_event_ns), field("add_partial_ns", f.add_partial_ns);
  field("gather_row_ns", f.gather_row_ns), field("gather_event_ns", f.gather_event_ns);
  field("loss_step_ns", f.loss_step_ns), field("loss_output_ns", f.loss_output_ns);
  field("copy_ns", f.copy_ns), field("barrier_ns", f.barrier_ns);
  field("adam_ns", f.adam_ns), field("adam_all_ns", f.adam_all_ns);
}

template <class Costs, class Field>
void each_tile_cost(Costs& c, Field field) {
  field("forward_step", c.forward_step), field("forward_rows", c.forward_rows);
  field("forward_factor", c.forward_factor), field("delta_step", c.delta_step);
  field("weight_rows", c.weight_rows), field("weight_factor", c.weight_factor);
  field("input_rows", c.input_rows), field("input_factor", c.input_factor);
  field("membrane_step_ns", c.membrane_step_ns);
}

/// Calls `tile(name, costs)` for every kind of tile.
template <class Figures, class Tile>
void each_tile(Figures& f, Tile tile) {
  for (std::size_t i = 0; i < kTileWidths.size(); ++i) tile(fmt::format("tile{}", kTileWidths[i]), f.tiles[i]);
  for (std::size_t i = 0; i < kHalfTileWidths.size(); ++i)
    tile(fmt::format("tile{}_bf16", kHalfTileWidths[i]), f.half_tiles[i]);
}

/// FNV-1a, 64 bits: the same on every machine and in every build.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

}  // namespace

std::filesystem::path figures_path(const Machine& machine) {
  const auto absolute = [](const char* variable) {
    const char* value = std::getenv(variable);
    const std::filesystem::path path = value ? value : "";
    return path.is_absolute() ? path : std::filesystem::path();
  };
  std::filesystem::path folder = absolute("XDG_CACHE_HOME");
  if (folder.empty()) {
    folder = absolute("HOME");
    if (folder.empty()) return {};
    folder /= ".cache";
  }
  const std::string what = fmt::format("{}|{}|{}|{}|{}", machine.cpu, machine.l1_bytes, machine.l2_bytes,
                                       machine.l3_bytes, machine.seats.size());
  return folder / "spikeloom" / fmt::format("machine-{:016x}.json", hash_of(what));
}

std::string program_identity() {
  struct stat status {};
  if (::stat("/proc/self/exe", &status) != 0) return "unknown";
  return fmt::format("{}-{}.{}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::optional<MachineFigures> load_figures(const std::filesystem::path& path, const std::string& identity) {
  std::ifstream stream(path);
  if (path.empty() || !stream) return std::nullopt;
  try {
    const Json file = Json::parse(stream);
    if (file.at("format") != kFormat || file.at("program") != identity) return std::nullopt;
    MachineFigures figures;
    each_figure(figures, [&](const char* name, auto& member) { get(file.at("figures"), name, member); });
    each_tile(figures, [&](const std::string& key, TileCosts& tile) {
      const Json& costs = file.at(key);
      each_tile_cost(tile, [&](const char* name, auto& member) { get(costs, name, member); });
    });
    return figures;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool save_figures(const MachineFigures& figures, const std::filesystem::path& path, const std::string& identity) {
  if (path.empty()) return false;
  Json file{{"format", kFormat}, {"program", identity}, {"figures", Json::object()}};
  each_figure(figures, [&](const char* name, const auto& member) { put(file["figures"], name, member); });
  each_tile(figures, [&](const std::string& key, const TileCosts& tile) {
    Json& costs = file[key] = Json::object();
    each_tile_cost(tile, [&](const char* name, const auto& member) { put(costs, name, member); });
  });
  try {
    std::filesystem::create_directories(path.parent_path());
    const std::string text = file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
    DurableFile out(path);
    out.write(std::as_bytes(std::span(text)));
    out.commit();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace spikeloom
