// Speech from the program espeak-ng, run as a process of its own.
#pragma once

#include <string>
#include <vector>

#include "data/encode/audio_file.hpp"

namespace spikeloom {

struct SpeechRequest {
  std::string voice;           // language and variant as espeak-ng wants them: "en-us+f3"
  std::string text;            // UTF-8
  int words_per_minute = 175;  // 80 .. 450
  int pitch = 50;              // 0 .. 99
  int amplitude = 100;         // 0 .. 200
};

/// Speaks. The same request gives the same samples with the same espeak-ng. Thread-safe. Throws UserError where
/// espeak-ng is not installed (and says how to install it) or fails.
Recording speak(const SpeechRequest& request);

/// The voice variants that are installed, by file name ("f3", "Mr serious"), sorted. Throws as speak().
std::vector<std::string> installed_variants();

}  // namespace spikeloom
