// The one table of settings. Parser, --set, help, error messages, writing and docs/reference/settings.md are all made
// from it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <spikeloom/configuration.hpp>
#include "network/setting_value.hpp"

namespace spikeloom {

/// Where a setting is stored: `layer` is null for settings outside [[layers]]. Relative paths are taken from `base`.
struct SettingTarget {
  Configuration* configuration = nullptr;
  LayerSpec* layer = nullptr;
  std::filesystem::path base;
};

struct Setting {
  std::string section;  // "" (top of the file), "data", "layers", ...
  std::string name;
  std::string unit;          // "" if it has none
  std::string allowed;       // "a whole number from 1 to 4096"
  std::string sentence;      // what it is, for help and documentation
  std::string default_note;  // replaces the default value in help where that depends on something, or there is none
                             // ("required")
  bool takes_text = false;   // --set takes the text as it stands, without quotes
  /// Stores a value. False, and nothing stored, if it is not allowed.
  std::function<bool(const SettingTarget&, const SettingValue&)> set;
  /// The stored value; nothing where another setting stands for this one (decay and tau_mem_ms).
  std::function<std::optional<SettingValue>(const Configuration&, const LayerSpec*)> get;

  std::string key() const { return section.empty() ? name : section + "." + name; }
};

/// All settings, in the order of documentation and of written files.
std::span<const Setting> settings();

const Setting* find_setting(std::string_view section, std::string_view name);

/// What configurations call the layer's neurons: "lif".
std::string neuron_name(const LayerSpec& layer);

/// Section names in order, "" first.
std::vector<std::string> section_names();
std::vector<std::string> setting_names(std::string_view section);

/// The known key ("data.steps") nearest to `section`.`name`: by edit distance, in the same section unless another one
/// has a nearer.
std::string nearest_key(std::string_view section, std::string_view name);
std::string nearest_section(std::string_view name);

/// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The default as help and documentation show it.
std::string default_text(const Setting& setting);

/// All settings as plain text (for a terminal) and as the page docs/reference/settings.md.
std::string settings_as_text();
std::string settings_as_markdown();

}  // namespace spikeloom
