// Recordings from WAV, FLAC and whatever else libsndfile reads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace spikeloom {

struct Recording {
  std::vector<float> samples;  // full scale is -1 .. 1; channels are averaged
  int sample_rate = 0;         // Hz
};

/// Reads a whole file. Throws UserError naming the file: missing, a directory, no audio, truncated, without samples,
/// longer than 30 s, sample rate outside 8,000 .. 48,000 Hz, more than two channels, or a sample that is NaN or
/// infinite.
Recording read_audio(const std::filesystem::path& path);

/// The same for a file that lies in memory; `name` stands for it in messages.
Recording decode_audio(std::span<const std::byte> bytes, const std::string& name);

}  // namespace spikeloom
