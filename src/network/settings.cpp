#include "network/settings.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace spikeloom {

const Setting* find_setting(std::string_view section, std::string_view name) {
  for (const Setting& setting : settings()) {
    if (setting.section == section && setting.name == name) return &setting;
  }
  return nullptr;
}

std::string neuron_name(const LayerSpec& layer) {
  return std::get<std::string>(*find_setting("layers", "neuron")->get(Configuration{}, &layer));
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) {
    if (names.empty() || names.back() != setting.section) names.push_back(setting.section);
  }
  return names;
}

std::vector<std::string> setting_names(std::string_view section) {
  std::vector<std::string> names;
  for (const Setting& setting : settings()) {
    if (setting.section == section) names.push_back(setting.name);
  }
  return names;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table of Damerau and Levenshtein (neighbours swapped at most once): two back, one back, and this
  // one.
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string nearest_key(std::string_view section, std::string_view name) {
  const Setting* best = nullptr;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const bool same_section : {true, false}) {
    for (const Setting& setting : settings()) {
      if ((setting.section == section) != same_section) continue;
      const std::size_t distance = edit_distance(setting.name, name);
      if (distance < best_distance) {
        best = &setting;
        best_distance = distance;
      }
    }
  }
  return best->key();
}

std::string nearest_section(std::string_view name) {
  const std::vector<std::string> names = section_names();
  return *std::min_element(names.begin() + 1, names.end(), [&](const std::string& a, const std::string& b) {
    return edit_distance(a, name) < edit_distance(b, name);
  });
}

}  // namespace spikeloom
