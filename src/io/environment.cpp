#include "io/environment.hpp"

#include <gnu/libc-version.h>
#include <hwy/targets.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/worker_team.hpp"

namespace spikeloom {
namespace {

/// The value of the first line "key : value" of a file of such lines; empty if there is none.
std::string value_of(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t begin = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1)
    names.emplace_back(hwy::TargetName(left & -left));
  return names;
}

/// The words of this process's command line.
std::vector<std::string> command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

std::uint64_t available_memory() {
  std::istringstream text(value_of("/proc/meminfo", "MemAvailable"));
  std::uint64_t kibibytes = 0;
  text >> kibibytes;
  return kibibytes * 1024;
}

std::string environment_as_json(int threads) {
  utsname system{};
  uname(&system);
  const nlohmann::ordered_json environment = {
      {"spikeloom", SPIKELOOM_VERSION},
      {"source", SPIKELOOM_SOURCE},
      {"command", command()},
      {"cpu", value_of("/proc/cpuinfo", "model name")},
      {"machine", system.machine},
      {"instruction_sets", instruction_sets()},
      {"cores", available_cores()},
      {"threads", threads},
      {"memory_available_bytes", available_memory()},
      {"system", std::string(system.sysname) + " " + system.release},
      {"compiler", __VERSION__},
      {"libc", gnu_get_libc_version()},
  };
  // The command line is the user's and may be in any encoding.
  return environment.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace spikeloom
