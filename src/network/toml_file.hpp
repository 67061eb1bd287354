// A configuration file as sections of (key, value, line). The only place that knows the TOML library.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "network/setting_value.hpp"

namespace spikeloom {

struct TomlEntry {
  std::string key;
  SettingValue value;
  int line = 0;
};

/// `[name]`, one element of `[[name]]` (repeated), or the keys before any section (name "").
struct TomlSection {
  std::string name;
  bool repeated = false;
  int line = 0;
  std::vector<TomlEntry> entries;  // in order of lines
};

/// Sections in order of lines. Throws UserError "FILE: ..." or "FILE:LINE: ..." if the file can't be read or is no
/// TOML.
std::vector<TomlSection> read_toml_file(const std::filesystem::path& file);

/// The value of `--set key=TEXT` as TOML; nothing if TEXT is no TOML value (a bare word, a path, 1/5).
std::optional<SettingValue> parse_toml_value(const std::string& text);

}  // namespace spikeloom
