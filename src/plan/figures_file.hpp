// Measured figures kept from one call of the program to the next, in a file per machine.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "plan/figures.hpp"
#include "plan/machine.hpp"

namespace spikeloom {

/// $XDG_CACHE_HOME/spikeloom/machine-<hash of CPU, caches and usable cores>.json, or below ~/.cache. Empty where
/// neither variable names an absolute path.
std::filesystem::path figures_path(const Machine& machine);

/// What tells one build of the program from the next: figures of other kernels are of no use.
std::string program_identity();

/// The figures, if the file is there, whole, and of this program. Whatever is wrong with it, it is measured anew.
std::optional<MachineFigures> load_figures(const std::filesystem::path& path, const std::string& identity);

/// Writes beside and renames. A place that can't be written is no error: the next call measures again. True if written.
bool save_figures(const MachineFigures& figures, const std::filesystem::path& path, const std::string& identity);

}  // namespace spikeloom
