#include "data/encode/voices.hpp"

#include <array>

namespace spikeloom {

const std::vector<VoiceFamily>& voice_families() {
  static const std::vector<VoiceFamily> families = {
      {"f", false, {"f1"}},           {"f", true, {"f2"}},        {"f", false, {"f3"}},
      {"f", false, {"f4"}},           {"f", true, {"f5"}},        {"m", false, {"m1"}},
      {"m", false, {"m2"}},           {"m", true, {"m3"}},        {"m", false, {"m4"}},
      {"m", false, {"m5"}},           {"m", false, {"m6"}},       {"m", true, {"m7"}},
      {"m", false, {"adam"}},         {"m", false, {"Alex"}},     {"f", false, {"Annie"}},
      {"f", false, {"aunty"}},        {"f", true, {"belinda"}},   {"m", false, {"benjamin"}},
      {"m", false, {"boris"}},        {"m", false, {"caleb"}},    {"m", true, {"david"}},
      {"m", false, {"Denis"}},        {"m", false, {"Diogo"}},    {"m", false, {"ed"}},
      {"m", true, {"Gene", "Gene2"}}, {"f", false, {"grandma"}},  {"m", false, {"grandpa"}},
      {"m", false, {"gustave"}},      {"m", false, {"Henrique"}}, {"m", false, {"Hugo"}},
      {"m", false, {"Jacky"}},        {"m", false, {"john"}},     {"m", false, {"klatt", "klatt2", "klatt3", "klatt5"}},
      {"m", false, {"Lee"}},          {"f", false, {"linda"}},    {"m", false, {"Mario"}},
      {"m", false, {"max"}},          {"m", true, {"Michael"}},   {"m", false, {"michel"}},
      {"m", false, {"miguel"}},       {"m", false, {"Mike"}},     {"m", false, {"Mr serious"}},
      {"m", false, {"Nguyen"}},       {"m", false, {"norbert"}},  {"m", false, {"pablo"}},
      {"m", true, {"paul"}},          {"m", false, {"pedro"}},    {"m", false, {"quincy"}},
      {"m", false, {"rob"}},          {"m", true, {"robert"}},    {"m", false, {"sandro"}},
      {"m", false, {"shelby"}},       {"m", false, {"Storm"}},    {"m", false, {"travis"}},
      {"m", true, {"victor"}},
  };
  return families;
}

std::span<const std::string_view> english_voices() {
  static constexpr std::array<std::string_view, 3> voices = {"en-gb", "en-us", "en-gb-scotland"};
  return voices;
}

std::span<const std::string_view> german_voices() {
  static constexpr std::array<std::string_view, 1> voices = {"de"};
  return voices;
}

std::string_view spoken_digit_text(int label) {
  static constexpr std::array<std::string_view, kSpokenDigitClasses> words = {
      "zero", "one",  "two",  "three", "four", "five", "six",   "seven",  "eight", "nine",
      "null", "eins", "zwei", "drei",  "vier", "fünf", "sechs", "sieben", "acht",  "neun"};
  return words[static_cast<std::size_t>(label)];
}

std::vector<std::string> spoken_digit_keys() {
  std::vector<std::string> keys;
  for (int label = 0; label < kSpokenDigitClasses; ++label)
    keys.emplace_back(label == 15 ? "fuenf" : spoken_digit_text(label));
  return keys;
}

}  // namespace spikeloom
