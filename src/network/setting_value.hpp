// A value of a setting, between a configuration file (or --set) and the structs: what TOML can say, without a TOML
// library in the header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace spikeloom {

/// `{speakers = [4, 5]}`, or a list of whole numbers where a setting wants speakers.
struct SpeakerList {
  std::vector<int> speakers;
  bool operator==(const SpeakerList&) const = default;
};

/// Something that no setting takes (a date, a table, a mixed list): only its text is kept, for the error message.
struct UnusableValue {
  std::string text;
  bool operator==(const UnusableValue&) const = default;
};

/// Lists hold numbers or texts; an empty one counts as of numbers.
using SettingValue = std::variant<bool, std::int64_t, double, std::string, std::vector<double>,
                                  std::vector<std::string>, SpeakerList, UnusableValue>;

/// The value as TOML says it; numbers in the shortest form that reads back to the same bits.
std::string to_toml_text(const SettingValue& value);

/// A TOML basic string, quotes and escapes included.
std::string quoted(std::string_view text);

/// Position of the first byte that is no UTF-8, or npos. TOML is UTF-8, so other text could be neither read nor
/// written.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace spikeloom
