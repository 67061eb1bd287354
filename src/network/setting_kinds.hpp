// The kinds of settings (whole numbers, choices, paths, ...): how each checks, stores and reads back a value. Used by
// the table alone.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "network/settings.hpp"

namespace spikeloom::setting_kinds {

/// Where a value lives in a Configuration or a LayerSpec.
template <class Owner, class T>
struct Place {
  std::function<T&(Owner&)> locate;
  T& in(Owner& owner) const { return locate(owner); }
  const T& in(const Owner& owner) const { return locate(const_cast<Owner&>(owner)); }
};

template <class Owner, class T>
Place<Owner, T> at(T Owner::*member) {
  return {[=](Owner& owner) -> T& { return owner.*member; }};
}
template <class Owner, class Part, class T>
Place<Owner, T> at(Part Owner::*part, T Part::*member) {
  return {[=](Owner& owner) -> T& { return owner.*part.*member; }};
}

template <class Owner>
Owner& owner_of(const SettingTarget& target) {
  if constexpr (std::is_same_v<Owner, LayerSpec>) {
    return *target.layer;
  } else {
    return *target.configuration;
  }
}
template <class Owner>
const Owner& owner_of(const Configuration& configuration, const LayerSpec* layer) {
  if constexpr (std::is_same_v<Owner, LayerSpec>) {
    return *layer;
  } else {
    return configuration;
  }
}

/// Limits of a number; `low_open` excludes `low` itself.
struct Limits {
  double low;
  double high;
  bool low_open = false;
  bool high_open = false;
  bool contain(double value) const {  // false for NaN
    return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
  }
  std::string text() const;  // "from 0 to 1", "above 0 and up to 1e9"
};

/// A number, whole or not.
std::optional<double> as_number(const SettingValue& value);
/// Two numbers.
std::optional<Range> as_pair(const SettingValue& value);
std::filesystem::path resolve_path(const SettingTarget& target, const std::string& text);

/// Joins "a", "b", "c" as "a, b, c".
std::string joined(const std::vector<std::string>& words);

template <class Owner, class Integer>
Setting whole_number(Place<Owner, Integer> place, std::int64_t low, std::int64_t high) {
  Setting setting;
  setting.allowed = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const auto* number = std::get_if<std::int64_t>(&value);
    if (!number || *number < low || *number > high) return false;
    place.in(owner_of<Owner>(target)) = static_cast<Integer>(*number);
    return true;
  };
  setting.get = [=](const Configuration& configuration, const LayerSpec* layer) -> std::optional<SettingValue> {
    return static_cast<std::int64_t>(place.in(owner_of<Owner>(configuration, layer)));
  };
  return setting;
}

template <class Owner>
Setting number(Place<Owner, double> place, Limits limits) {
  Setting setting;
  setting.allowed = "a number " + limits.text();
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const std::optional<double> given = as_number(value);
    if (!given || !limits.contain(*given)) return false;
    place.in(owner_of<Owner>(target)) = *given;
    return true;
  };
  setting.get = [=](const Configuration& configuration, const LayerSpec* layer) -> std::optional<SettingValue> {
    return place.in(owner_of<Owner>(configuration, layer));
  };
  return setting;
}

template <class Owner>
Setting boolean(Place<Owner, bool> place) {
  Setting setting;
  setting.allowed = "true or false";
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const auto* given = std::get_if<bool>(&value);
    if (given) place.in(owner_of<Owner>(target)) = *given;
    return given != nullptr;
  };
  setting.get = [=](const Configuration& configuration, const LayerSpec* layer) -> std::optional<SettingValue> {
    return place.in(owner_of<Owner>(configuration, layer));
  };
  return setting;
}

template <class Owner, class Enum>
Setting choice(Place<Owner, Enum> place, std::vector<std::pair<std::string, Enum>> options) {
  Setting setting;
  std::vector<std::string> names;
  for (const auto& option : options) names.push_back(option.first);
  setting.allowed = "one of " + joined(names);
  setting.takes_text = true;
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const auto* text = std::get_if<std::string>(&value);
    for (const auto& [name, option] : options) {
      if (!text || *text != name) continue;
      place.in(owner_of<Owner>(target)) = option;
      return true;
    }
    return false;
  };
  setting.get = [=](const Configuration& configuration, const LayerSpec* layer) -> std::optional<SettingValue> {
    for (const auto& [name, option] : options) {
      if (option == place.in(owner_of<Owner>(configuration, layer))) return name;
    }
    return std::nullopt;
  };
  return setting;
}

Setting path(Place<Configuration, std::filesystem::path> place, std::string allowed);
Setting layer_name();
Setting step_length();
Setting validation();
Setting fold();
/// tau_mem_ms and decay, and their like: one number for the layer, or [low, high]. `decay` tells which of the two is
/// meant.
Setting time_constant(Place<LayerSpec, TimeConstant> place, bool decay, Limits limits);
/// One number for the layer, or [low, high].
Setting neuron_constant(Place<LayerSpec, Range> place, Limits limits);
/// The constants that a layer learns: a list of their names.
Setting learned_constants();
/// [low, high] with low <= high, both within the limits.
Setting factor_range(Place<Configuration, Range> place, Limits limits);
/// The inputs of a layer: a list of names.
Setting layer_inputs();
/// One whole number for the layer, or [low, high].
Setting whole_range(Place<LayerSpec, Range> place, std::int64_t low, std::int64_t high);
Setting window();

}  // namespace spikeloom::setting_kinds
