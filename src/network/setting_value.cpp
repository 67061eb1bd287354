#include "network/setting_value.hpp"

#include <fmt/format.h>

#include <cmath>

namespace spikeloom {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  // TOML tells whole numbers and floats apart; a reader of the file should see that this one is a float.
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class T, class Text>
std::string list_text(const std::vector<T>& values, Text text) {
  std::string joined;
  for (const T& value : values) joined += (joined.empty() ? "" : ", ") + text(value);
  return "[" + joined + "]";
}

struct ToText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(const std::vector<double>& values) const { return list_text(values, number_text); }
  std::string operator()(const std::vector<std::string>& texts) const { return list_text(texts, quoted); }
  std::string operator()(const SpeakerList& list) const {
    return "{speakers = " + list_text(list.speakers, [](int speaker) { return std::to_string(speaker); }) + "}";
  }
  std::string operator()(const UnusableValue& value) const { return value.text; }
};

}  // namespace

std::string to_toml_text(const SettingValue& value) { return std::visit(ToText{}, value); }

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        result += "\\\"";
        break;
      case '\\':
        result += "\\\\";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\t':
        result += "\\t";
        break;
      case '\r':
        result += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
        } else {
          result += c;
        }
    }
  }
  return result + "\"";
}

std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    if (length == 0 || at + length > text.size()) return at;
    for (std::size_t i = 1; i < length; ++i) {
      if ((static_cast<unsigned char>(text[at + i]) & 0xc0) != 0x80) return at;
    }
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace spikeloom
