// What the machine is and what it was measured to give; shared by `bench kernels` and `plan`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <utility>
#include <vector>

#include "plan/figures.hpp"
#include "plan/machine.hpp"

namespace spikeloom {

nlohmann::ordered_json machine_as_json(const Machine& machine, const MachineFigures* figures);
std::vector<std::pair<std::string, std::string>> machine_rows(const Machine& machine, const MachineFigures* figures);

std::string bytes_text(double bytes);  // "2 MiB"

}  // namespace spikeloom
