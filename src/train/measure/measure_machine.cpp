#include "train/measure/measure_machine.hpp"

#include "kernels/kernels.hpp"
#include "plan/figures_file.hpp"
#include "train/measure/parts.hpp"

namespace spikeloom {

MachineFigures measure_machine(const Machine& machine, WorkerTeam& team) {
  MachineFigures figures;
  figures.cpu = machine.cpu;
  figures.instruction_set = kernels::available_targets().front();
  figures.workers = team.size();
  measure::measure_memory(machine, team, figures);
  measure::measure_products(figures);
  measure::measure_tiles(machine, figures);
  measure::measure_lists(figures);
  measure::measure_steps(machine, team, figures);
  return figures;
}

MachineFigures machine_figures(const Machine& machine, bool anew) {
  const std::filesystem::path path = figures_path(machine);
  const std::string identity = program_identity();
  if (!anew) {
    if (std::optional<MachineFigures> kept = load_figures(path, identity)) return *kept;
  }
  WorkerTeam team(static_cast<int>(machine.seats.size()));
  MachineFigures figures = measure_machine(machine, team);
  save_figures(figures, path, identity);
  return figures;
}

}  // namespace spikeloom
