#include "network/toml_file.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

std::string read_text(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    throw UserError(fmt::format("{}: is a directory; expected a configuration file (TOML)", file.string()));
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  // An empty file sets failbit on `text`, not badbit on `stream`; that is no error here.
  if (!stream.is_open() || stream.bad()) {
    throw UserError(fmt::format("{}: can't be read ({}); expected a configuration file (TOML)", file.string(),
                                errno ? std::strerror(errno) : "unknown error"));
  }
  return std::move(text).str();
}

std::string node_text(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& typed) { text << typed; });
  std::string line = std::move(text).str();
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::optional<std::vector<double>> number_list(const toml::array& array) {
  std::vector<double> numbers;
  for (const toml::node& item : array) {
    if (!item.is_number()) return std::nullopt;
    numbers.push_back(*item.value<double>());
  }
  return numbers;
}

std::optional<std::vector<std::string>> text_list(const toml::array& array) {
  std::vector<std::string> texts;
  for (const toml::node& item : array) {
    if (!item.is_string()) return std::nullopt;
    texts.push_back(*item.value<std::string>());
  }
  return texts;
}

std::optional<SpeakerList> speaker_list(const toml::table& table) {
  const toml::array* array = table["speakers"].as_array();
  if (table.size() != 1 || !array) return std::nullopt;
  SpeakerList list;
  for (const toml::node& item : *array) {
    const auto* speaker = item.as_integer();
    if (!speaker || speaker->get() < 0 || speaker->get() > std::numeric_limits<int>::max()) return std::nullopt;
    list.speakers.push_back(static_cast<int>(speaker->get()));
  }
  return list;
}

SettingValue to_value(const toml::node& node) {
  if (const auto* value = node.as_boolean()) return value->get();
  if (const auto* value = node.as_integer()) return value->get();
  if (const auto* value = node.as_floating_point()) return value->get();
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* array = node.as_array()) {
    if (auto numbers = number_list(*array)) return *std::move(numbers);
    if (auto texts = text_list(*array)) return *std::move(texts);
  }
  if (const auto* table = node.as_table()) {
    if (auto list = speaker_list(*table)) return *std::move(list);
  }
  return UnusableValue{node_text(node)};
}

int line_of(const toml::key& key) { return static_cast<int>(key.source().begin.line); }
int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

TomlSection to_section(std::string name, const toml::table& table, bool repeated) {
  TomlSection section{std::move(name), repeated, line_of(table), {}};
  for (const auto& [key, node] : table) {
    section.entries.push_back({std::string(key.str()), to_value(node), line_of(key)});
  }
  std::stable_sort(section.entries.begin(), section.entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return section;
}

bool holds_tables(const toml::array& array) {
  return !array.empty() && std::all_of(array.begin(), array.end(), [](const auto& item) { return item.is_table(); });
}

std::vector<TomlSection> to_sections(const toml::table& document) {
  std::vector<TomlSection> sections;
  TomlSection root{"", false, 1, {}};
  for (const auto& [key, node] : document) {
    const std::string name(key.str());
    if (const auto* table = node.as_table()) {
      sections.push_back(to_section(name, *table, false));
    } else if (const auto* array = node.as_array(); array && holds_tables(*array)) {
      for (const toml::node& item : *array) sections.push_back(to_section(name, *item.as_table(), true));
    } else {
      root.entries.push_back({name, to_value(node), line_of(key)});
    }
  }
  sections.push_back(std::move(root));
  std::stable_sort(sections.begin(), sections.end(),
                   [](const TomlSection& a, const TomlSection& b) { return a.line < b.line; });
  return sections;
}

}  // namespace

std::vector<TomlSection> read_toml_file(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    throw UserError(fmt::format("{}:{}: byte 0x{:02x} is not UTF-8, which TOML files are", file.string(), line,
                                static_cast<unsigned char>(text[bad])));
  }
  try {
    return to_sections(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw UserError(fmt::format("{}:{}: {}", file.string(), error.source().begin.line, error.description()));
  }
}

std::optional<SettingValue> parse_toml_value(const std::string& text) {
  if (text.find('\n') != std::string::npos) return std::nullopt;  // else the text could bring keys of its own
  try {
    const toml::table document = toml::parse("value = " + text);
    return to_value(*document.get("value"));
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

}  // namespace spikeloom
