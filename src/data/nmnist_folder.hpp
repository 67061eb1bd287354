// Reads folders of N-MNIST recordings (MODELS: N-MNIST).
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

inline constexpr int kNmnistSide = 34;
inline constexpr int kNmnistChannels = 2 * kNmnistSide * kNmnistSide;

/// One recording: 5 bytes an event (x, y, then one bit of polarity and 23 bits of microseconds, big-endian); y = 240
/// marks 2^13 us more for all that follow. Channel = polarity * 1156 + y * 34 + x. Throws UserError naming `shown` and
/// the byte.
std::vector<Event> decode_nmnist(std::span<const std::byte> bytes, const std::string& shown);

/// A recording's file and its label.
struct NmnistFile {
  std::filesystem::path path;
  int label = 0;
};

/// The recordings of a folder with `Train` and/or `Test` in it, or of a folder of label folders (which has no parts:
/// `part` is ignored). In order: Train before Test, then by label, then by the number that a file is named by. Hidden
/// files are skipped. Throws UserError.
std::vector<NmnistFile> list_nmnist(const std::filesystem::path& folder, DataPart part);

/// All of `list_nmnist`, decoded, to `sink`.
void read_nmnist(
    const std::filesystem::path& folder, DataPart part, int classes,
    const std::function<void(std::span<const Event> events, int label, const std::filesystem::path& file)>& sink);

}  // namespace spikeloom
