// environment.json: on what machine and with what programs a run was made.
#pragma once

#include <cstdint>
#include <string>

namespace spikeloom {

/// CPU model, instruction sets that the kernels may use, cores, threads of the run, memory, system, versions, and the
/// command.
std::string environment_as_json(int threads);

/// Memory that can be had without swapping, in bytes; 0 where the system does not say.
std::uint64_t available_memory();

}  // namespace spikeloom
