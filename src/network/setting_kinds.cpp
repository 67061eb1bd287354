#include "network/setting_kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "network/parameters.hpp"

namespace spikeloom::setting_kinds {
namespace {

/// A number as short as a reader wants it: 1e9, not 1000000000.0.
std::string short_number(double value) {
  std::string text = fmt::format("{:g}", value);
  const std::size_t exponent = text.find("e+0");
  if (exponent != std::string::npos) text.erase(exponent + 1, 2);
  return text;
}

std::optional<std::vector<int>> as_speakers(const SettingValue& value) {
  if (const auto* list = std::get_if<SpeakerList>(&value)) return list->speakers;
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  if (!numbers) return std::nullopt;
  std::vector<int> speakers;
  for (const double number : *numbers) {
    if (number != std::floor(number) || number < 0 || number > 1e9) return std::nullopt;
    speakers.push_back(static_cast<int>(number));
  }
  return speakers;
}

bool all_different(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) == values.end();
}

/// "2/5" as 2 and 5.
std::optional<std::pair<int, int>> as_fraction(std::string_view text) {
  int part = 0;
  int whole = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, part);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, whole);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return std::pair{part, whole};
}

}  // namespace

std::string Limits::text() const {
  if (std::isinf(high)) return fmt::format("{} {}", low_open ? "above" : "from", short_number(low));
  if (!low_open && !high_open) return fmt::format("from {} to {}", short_number(low), short_number(high));
  return fmt::format("{} {}{}{}", low_open ? "above" : "from", short_number(low),
                     high_open ? " and below " : " and up to ", short_number(high));
}

std::optional<double> as_number(const SettingValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<Range> as_pair(const SettingValue& value) {
  const auto* numbers = std::get_if<std::vector<double>>(&value);
  if (!numbers || numbers->size() != 2) return std::nullopt;
  return Range{(*numbers)[0], (*numbers)[1]};
}

std::filesystem::path resolve_path(const SettingTarget& target, const std::string& text) {
  if (text.empty()) return {};
  return std::filesystem::absolute(target.base / text).lexically_normal();
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

Setting path(Place<Configuration, std::filesystem::path> place, std::string allowed) {
  Setting setting;
  setting.takes_text = true;
  setting.allowed = std::move(allowed);
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text || find_invalid_utf8(*text) != std::string::npos) return false;
    place.in(*target.configuration) = resolve_path(target, *text);
    return true;
  };
  setting.get = [=](const Configuration& configuration, const LayerSpec*) -> std::optional<SettingValue> {
    return place.in(configuration).string();
  };
  return setting;
}

Setting layer_name() {
  Setting setting;
  setting.takes_text = true;
  setting.allowed = "letters, digits, _ and -, 1 to 64 of them";
  setting.set = [](const SettingTarget& target, const SettingValue& value) {
    const auto* text = std::get_if<std::string>(&value);
    // Tensor names are <layer>.weight, and --set addresses layers.<layer>.<key>: so no dots, and nothing that a shell
    // would touch.
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    };
    if (!text || text->empty() || text->size() > 64 || !std::all_of(text->begin(), text->end(), fits)) return false;
    target.layer->name = *text;
    return true;
  };
  setting.get = [](const Configuration&, const LayerSpec* layer) -> std::optional<SettingValue> { return layer->name; };
  return setting;
}

Setting step_length() {
  Setting setting;
  setting.allowed = "a whole number of microseconds, from 0.001 to 1e6 ms";
  setting.set = [](const SettingTarget& target, const SettingValue& value) {
    const std::optional<double> step_ms = as_number(value);
    if (!step_ms || !(*step_ms >= 0.001 && *step_ms <= 1e6)) return false;
    // Events are binned in whole microseconds, so 0.1 ms is 100 us although 0.1 is no binary fraction.
    const double microseconds = *step_ms * 1000.0;
    if (std::abs(microseconds - std::round(microseconds)) > 1e-9 * microseconds) return false;
    target.configuration->data.step_ms = *step_ms;
    return true;
  };
  setting.get = [](const Configuration& configuration, const LayerSpec*) -> std::optional<SettingValue> {
    return configuration.data.step_ms;
  };
  return setting;
}

Setting validation() {
  Setting setting;
  setting.allowed = "a fraction from 0 to 0.9 (0: none), a path, or speakers as [4, 5] or {speakers = [4, 5]}";
  setting.set = [](const SettingTarget& target, const SettingValue& value) {
    DataSpec& data = target.configuration->data;
    if (const std::optional<double> fraction = as_number(value)) {
      if (!(*fraction >= 0.0 && *fraction <= 0.9)) return false;
      data.validation_fraction = *fraction;
      data.validation_file.clear();
      data.validation_speakers.clear();
    } else if (const auto* text = std::get_if<std::string>(&value);
               text && !text->empty() && find_invalid_utf8(*text) == std::string::npos) {
      data.validation_fraction = 0.0;
      data.validation_file = resolve_path(target, *text);
      data.validation_speakers.clear();
    } else if (const auto speakers = as_speakers(value); speakers && !speakers->empty() && all_different(*speakers)) {
      data.validation_fraction = 0.0;
      data.validation_file.clear();
      data.validation_speakers = *speakers;
    } else {
      return false;
    }
    return true;
  };
  setting.get = [](const Configuration& configuration, const LayerSpec*) -> std::optional<SettingValue> {
    const DataSpec& data = configuration.data;
    if (!data.validation_file.empty()) return data.validation_file.string();
    if (!data.validation_speakers.empty()) return SpeakerList{data.validation_speakers};
    return data.validation_fraction;
  };
  return setting;
}

Setting fold() {
  Setting setting;
  setting.takes_text = true;
  setting.allowed = "\"k/n\" with 1 <= k <= n and 2 <= n <= 1000, or \"\" (none)";
  setting.set = [](const SettingTarget& target, const SettingValue& value) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) return false;
    const auto fraction = text->empty() ? std::pair{0, 0} : as_fraction(*text).value_or(std::pair{-1, -1});
    const auto [part, whole] = fraction;
    if (!text->empty() && !(whole >= 2 && whole <= 1000 && part >= 1 && part <= whole)) return false;
    target.configuration->data.fold = part;
    target.configuration->data.folds = whole;
    return true;
  };
  setting.get = [](const Configuration& configuration, const LayerSpec*) -> std::optional<SettingValue> {
    const DataSpec& data = configuration.data;
    return data.folds == 0 ? std::string() : fmt::format("{}/{}", data.fold, data.folds);
  };
  return setting;
}

namespace {

/// "a number from 0 to 1, or [low, high] within".
std::string one_or_range(const Limits& limits) {
  return fmt::format("a number {}, or [low, high] within", limits.text());
}

std::optional<Range> as_one_or_range(const SettingValue& value, const Limits& limits) {
  std::optional<Range> range = as_pair(value);
  if (const std::optional<double> one = as_number(value)) range = *one;
  if (!range || !limits.contain(range->low) || !limits.contain(range->high) || range->low > range->high)
    return std::nullopt;
  return range;
}

SettingValue to_value(const Range& range) {
  if (range.one()) return range.low;
  return std::vector<double>{range.low, range.high};
}

}  // namespace

Setting time_constant(Place<LayerSpec, TimeConstant> place, bool decay, Limits limits) {
  Setting setting;
  setting.allowed = one_or_range(limits);
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const std::optional<Range> range = as_one_or_range(value, limits);
    if (!range) return false;
    TimeConstant& constant = place.in(*target.layer);
    constant.decay_given = decay;
    (decay ? constant.decay : constant.tau_ms) = *range;
    return true;
  };
  setting.get = [=](const Configuration&, const LayerSpec* layer) -> std::optional<SettingValue> {
    const TimeConstant& constant = place.in(*layer);
    if (constant.decay_given != decay) return std::nullopt;
    return to_value(decay ? constant.decay : constant.tau_ms);
  };
  return setting;
}

Setting neuron_constant(Place<LayerSpec, Range> place, Limits limits) {
  Setting setting;
  setting.allowed = one_or_range(limits);
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const std::optional<Range> range = as_one_or_range(value, limits);
    if (range) place.in(*target.layer) = *range;
    return range.has_value();
  };
  setting.get = [=](const Configuration&, const LayerSpec* layer) -> std::optional<SettingValue> {
    return to_value(place.in(*layer));
  };
  return setting;
}

Setting learned_constants() {
  Setting setting;
  std::vector<std::string> names;
  for (const NeuronParameter parameter : kNeuronParameters) names.emplace_back(name_of(kind_of(parameter)));
  setting.allowed = "a list of different ones of " + joined(names);
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    std::vector<std::string> given;
    if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
      given = *texts;
    } else if (const auto* empty = std::get_if<std::vector<double>>(&value); !empty || !empty->empty()) {
      return false;
    }
    std::vector<NeuronParameter> learn;
    for (const std::string& name : given) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) return false;
      const auto parameter = static_cast<NeuronParameter>(found - names.begin());
      if (std::find(learn.begin(), learn.end(), parameter) != learn.end()) return false;
      learn.push_back(parameter);
    }
    target.layer->learn = learn;
    return true;
  };
  setting.get = [=](const Configuration&, const LayerSpec* layer) -> std::optional<SettingValue> {
    std::vector<std::string> learned;
    for (const NeuronParameter parameter : layer->learn) learned.push_back(names[static_cast<std::size_t>(parameter)]);
    return learned;
  };
  return setting;
}

Setting factor_range(Place<Configuration, Range> place, Limits limits) {
  Setting setting;
  setting.allowed = fmt::format("[low, high] with low <= high, each {}", limits.text());
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    const std::optional<Range> range = as_pair(value);
    if (!range || !limits.contain(range->low) || !limits.contain(range->high) || range->low > range->high) return false;
    place.in(*target.configuration) = *range;
    return true;
  };
  setting.get = [=](const Configuration& configuration, const LayerSpec*) -> std::optional<SettingValue> {
    const Range& range = place.in(configuration);
    return std::vector<double>{range.low, range.high};
  };
  return setting;
}

Setting layer_inputs() {
  Setting setting;
  setting.allowed = fmt::format("a list of names of layers or \"{}\", or [] (the layer before)", kDataInput);
  setting.set = [](const SettingTarget& target, const SettingValue& value) {
    const auto* names = std::get_if<std::vector<std::string>>(&value);
    const auto* empty = std::get_if<std::vector<double>>(&value);
    if (!names && !(empty && empty->empty())) return false;
    target.layer->inputs = names ? *names : std::vector<std::string>();
    return true;
  };
  setting.get = [](const Configuration&, const LayerSpec* layer) -> std::optional<SettingValue> {
    if (layer->inputs.empty()) return std::vector<double>();
    return layer->inputs;
  };
  return setting;
}

Setting whole_range(Place<LayerSpec, Range> place, std::int64_t low, std::int64_t high) {
  Setting setting;
  setting.allowed = fmt::format("a whole number from {} to {}, or [low, high] of such", low, high);
  setting.set = [=](const SettingTarget& target, const SettingValue& value) {
    std::optional<Range> range = as_pair(value);
    if (const auto* one = std::get_if<std::int64_t>(&value))
      range = Range{static_cast<double>(*one), static_cast<double>(*one)};
    if (!range || range->low > range->high) return false;
    for (const double end : {range->low, range->high}) {
      if (!(end >= static_cast<double>(low) && end <= static_cast<double>(high)) || end != std::floor(end))
        return false;
    }
    place.in(*target.layer) = *range;
    return true;
  };
  setting.get = [=](const Configuration&, const LayerSpec* layer) -> std::optional<SettingValue> {
    const Range& range = place.in(*layer);
    if (range.low == range.high) return static_cast<std::int64_t>(range.low);
    return std::vector<double>{range.low, range.high};
  };
  return setting;
}

Setting window() {
  Setting setting;
  setting.allowed = "[low, high] with low < high; inf and -inf are allowed";
  setting.set = [](const SettingTarget& target, const SettingValue& value) {
    const std::optional<Range> range = as_pair(value);
    if (!range || !(range->low < range->high)) return false;
    target.layer->surrogate.window_low = range->low;
    target.layer->surrogate.window_high = range->high;
    return true;
  };
  setting.get = [](const Configuration&, const LayerSpec* layer) -> std::optional<SettingValue> {
    return std::vector<double>{layer->surrogate.window_low, layer->surrogate.window_high};
  };
  return setting;
}

}  // namespace spikeloom::setting_kinds
