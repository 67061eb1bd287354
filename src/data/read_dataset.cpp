// Finds out what a path holds and reads it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>
#include "data/gunzip.hpp"
#include "data/nmnist_folder.hpp"
#include "data/shd_reader.hpp"

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

constexpr int kShdChannels = 700;
constexpr int kMostChannels = 1 << 20;

int chosen_channels(const fs::path& path, const ReadOptions& options, int default_channels) {
  const int channels = options.channels == 0 ? default_channels : options.channels;
  if (channels < 1 || channels > kMostChannels)
    throw UserError(fmt::format("{}: {} channels; allowed: 1 to {}", path.string(), channels, kMostChannels));
  return channels;
}

/// Whether `path` starts with these bytes at `offset`.
bool has_bytes(std::FILE* file, long offset, std::span<const unsigned char> expected) {
  std::array<unsigned char, 8> found{};
  return std::fseek(file, offset, SEEK_SET) == 0 &&
         std::fread(found.data(), 1, expected.size(), file) == expected.size() &&
         std::equal(expected.begin(), expected.end(), found.begin());
}

enum class FileKind { gzip, hdf5, other };

FileKind kind_of(const fs::path& path) {
  constexpr std::array<unsigned char, 2> kGzip{0x1F, 0x8B};
  constexpr std::array<unsigned char, 8> kHdf5{0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) throw UserError(fmt::format("{}: can't be opened: {}", path.string(), std::strerror(errno)));
  if (has_bytes(file.get(), 0, kGzip)) return FileKind::gzip;
  if (has_bytes(file.get(), 0, kHdf5)) return FileKind::hdf5;
  for (long offset = 512; offset <= (1L << 24); offset *= 2) {  // a user block may come first
    if (has_bytes(file.get(), offset, kHdf5)) return FileKind::hdf5;
  }
  return FileKind::other;
}

void tell(const ReadOptions& options, std::size_t recordings) {
  constexpr std::size_t kRecordings = 32;  // some 2 ms of SHD
  if (recordings % kRecordings == 0) options.progress(recordings);
}

SpikeDataset read_shd_file(const fs::path& path, const std::string& shown, const ReadOptions& options) {
  if (fs::file_size(path) == 0)
    throw UserError(fmt::format("{}: empty (0 bytes); an HDF5 file in SHD's layout is needed", shown));
  if (kind_of(path) != FileKind::hdf5)
    throw UserError(fmt::format("{}: not an HDF5 file (no HDF5 signature); SHD's layout is needed", shown));
  ShdReadOptions shd;
  shd.shown = shown;
  shd.channels = chosen_channels(shown, options, kShdChannels);
  shd.classes = options.classes;
  SpikeDataset data(options.binning, shd.channels);
  read_shd_isolated(path, shd, [&](std::span<const Event> events, int label, int speaker) {
    data.add(events, label, speaker, fmt::format("{}, sample {}", shown, data.size()));
    tell(options, data.size());
  });
  if (data.size() == 0) throw UserError(fmt::format("{}: no recordings in spikes/times", shown));
  return data;
}

SpikeDataset read_nmnist_folder(const fs::path& path, const ReadOptions& options) {
  const int channels = chosen_channels(path, options, kNmnistChannels);
  if (channels < kNmnistChannels) {
    throw UserError(
        fmt::format("{}: {} channels for N-MNIST; allowed: at least {}", path.string(), channels, kNmnistChannels));
  }
  SpikeDataset data(options.binning, channels);
  read_nmnist(path, options.part, options.classes, [&](std::span<const Event> events, int label, const fs::path& file) {
    data.add(events, label, -1, file.string());
    tell(options, data.size());
  });
  return data;
}

SpikeDataset read_any(const fs::path& path, const ReadOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw UserError(fmt::format("{}: no such file or folder", path.string()));
  if (fs::is_directory(status)) return read_nmnist_folder(path, options);
  if (!fs::is_regular_file(status)) throw UserError(fmt::format("{}: neither a file nor a folder", path.string()));
  if (kind_of(path) == FileKind::gzip)
    return read_shd_file(UnpackedFile(path, [&] { options.progress(0); }).path(), path.string(), options);
  return read_shd_file(path, path.string(), options);
}

}  // namespace

SpikeDataset read_dataset(const fs::path& path, const ReadOptions& options) {
  try {
    return read_any(path, options);
  } catch (const fs::filesystem_error& error) {
    throw UserError(fmt::format("{}: can't be read: {}", path.string(), error.code().message()));
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format("{}: not enough memory to hold its spikes", path.string()));
  }
}

}  // namespace spikeloom
