// The voices of the built-in spoken digits: which variants of espeak-ng belong to one speaker, and which speakers are
// kept for the test set.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spikeloom {

/// All variants of one speaker ("iven", "iven2", ...). Its place in voice_families() is the speaker's number in the
/// data set.
struct VoiceFamily {
  std::string_view gender;                 // "f" or "m"
  bool test;                               // heard in the test set only; the others in the train set only
  std::vector<std::string_view> variants;  // names of espeak-ng's variant files
};

/// Left out of espeak-ng's variants are robots, whispers and jokes, and those that distort speech so much that a
/// perceptron (24 time bins x 70 channel bins, trained on other voices) understood less than two thirds of their
/// digits.
const std::vector<VoiceFamily>& voice_families();

/// Voices of espeak-ng for the two languages, accents of English included.
std::span<const std::string_view> english_voices();
std::span<const std::string_view> german_voices();

/// The word of a label: 0 .. 9 English, 10 .. 19 German, as SHD has them ("fuenf"), and as espeak-ng is to read it
/// ("fünf").
inline constexpr int kSpokenDigitClasses = 20;
std::vector<std::string> spoken_digit_keys();
std::string_view spoken_digit_text(int label);

}  // namespace spikeloom
