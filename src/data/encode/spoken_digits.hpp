// The built-in data set: spoken digits as spikes, the like of the Spiking Heidelberg Digits.
#pragma once

#include <cstdint>
#include <filesystem>

namespace spikeloom {

class ProgressListener;

struct SpokenDigitsOptions {
  std::filesystem::path out;  // folder, created if missing
  int train = 8000;           // samples; 20 .. 1,000,000
  int test = 2000;            // the same range
  std::uint64_t seed = 1;
  int threads = 0;  // 0: all cores
};

/// Writes OUT/train.h5 and OUT/test.h5 in SHD's layout: the digits 0-9 in English (labels 0-9) and German (10-19),
/// spoken by espeak-ng and turned into spikes by the inner-ear model of SHD (InnerEar).
///
/// Voice, accent, pitch, rate, loudness, silence before and after the word, and background noise (signal-to-noise ratio
/// 10 .. 30 dB, from white to low-pass) are drawn per sample, as a function of (seed, split, sample number) alone.
/// Classes are balanced. The speaker is the family of voices; every family occurs in one of the two sets only, so the
/// test set asks how well a network understands speakers that it never heard.
///
/// The same options (but `threads`) and the same espeak-ng give the same bytes. Each file appears whole or not at all.
/// Throws UserError (a bad option, no espeak-ng, an unwritable folder) and ResourceError.
void make_spoken_digits(const SpokenDigitsOptions& options, ProgressListener& listener);

}  // namespace spikeloom
