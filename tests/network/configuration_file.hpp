// Configuration files for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <spikeloom/configuration.hpp>
#include <spikeloom/error.hpp>

#include "support/temporary_folder.hpp"

namespace spikeloom::testing {

/// Data and two layers: the least that is a configuration.
inline const std::string kMinimal = R"([data]
train = "train.h5"
[[layers]]
name = "hidden"
size = 8
[[layers]]
name = "readout"
neuron = "li"
size = 4
)";

/// A file config.toml in a folder of its own, removed at the end.
class ConfigurationFile {
 public:
  explicit ConfigurationFile(const std::string& text) { std::ofstream(path(), std::ios::binary) << text; }

  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path path() const { return folder_ / "config.toml"; }

 private:
  TemporaryFolder folder_;
};

inline Configuration load_text(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const ConfigurationFile file(text);
  return load_configuration(file.path(), overrides);
}

/// The message of the UserError that loading ends with, the folder cut off: "config.toml:3: ...". "" if there is none.
inline std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const ConfigurationFile file(text);
  try {
    load_configuration(file.path(), overrides);
  } catch (const UserError& error) {
    std::string message = error.what();
    const std::string folder = file.folder().string() + "/";
    for (auto at = message.find(folder); at != std::string::npos; at = message.find(folder))
      message.erase(at, folder.size());
    return message;
  }
  return "";
}

}  // namespace spikeloom::testing
