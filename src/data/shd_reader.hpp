// Reads recordings in the layout of the Spiking Heidelberg Digits and Spiking Speech Commands (MODELS: SHD).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

/// Times beyond this many seconds (11 days) are refused: they are no recording's.
inline constexpr double kLongestSeconds = 1e6;

struct ShdReadOptions {
  std::string shown;   // the file's name in messages
  int channels = 700;  // units are in [0, channels)
  int classes = 0;     // labels are in [0, classes); 0: any label of 16 bits
};

/// Takes recordings in file order. `speaker` is -1 where the file doesn't say.
using ShdSink = std::function<void(std::span<const Event> events, int label, int speaker)>;

/// Reads a file in this process, some recordings at a time. Times are llround(seconds * 1e6) microseconds; events stay
/// in the file's order. Throws UserError naming file, array, sample, event, value and allowed range. A file with
/// damaged bytes can crash the HDF5 library.
void read_shd(const std::filesystem::path& path, const ShdReadOptions& options, const ShdSink& sink);

/// The same in a child process, so that a damaged file is a UserError whatever it does to the library: crash, run in
/// circles, or ask for memory without end. `sink` is called in this process.
void read_shd_isolated(const std::filesystem::path& path, const ShdReadOptions& options, const ShdSink& sink);

}  // namespace spikeloom
