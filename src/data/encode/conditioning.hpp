// What may be done to a recording before the ear hears it.
#pragma once

#include "data/encode/audio_file.hpp"

namespace spikeloom {

/// Both are off by default: SHD's recordings came from a studio, with silence around the word. Recordings that are cut
/// to the word lose its first and last sounds to the ear model's window over the whole recording, and voices whose low
/// frequencies outweigh the rest leave the high channels silent.
struct Conditioning {
  double silence_ms = 0.0;       // silence added before and after, 0 .. 1000
  double pre_emphasis_hz = 0.0;  // frequencies rise by 6 dB an octave above this one, 0 (off) .. 4000: y[n] = x[n] -
                                 // exp(-2 pi f / rate) x[n - 1]
};

/// Throws UserError naming a value outside its range.
void check(const Conditioning& conditioning);

void condition(const Conditioning& conditioning, Recording& recording);

}  // namespace spikeloom
