// A file that is either wholly there or not at all: written beside its place, synced, then renamed.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace spikeloom {

/// Opens `path`.partial-<process> at once, so that an unwritable place shows before the work, and removes it unless
/// committed.
class DurableFile {
 public:
  /// Throws UserError where the place can't be written, ResourceError where the disk is full.
  explicit DurableFile(std::filesystem::path path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Appends. Throws ResourceError (disk full, with the bytes that were to be written) or UserError.
  void write(std::span<const std::byte> bytes);
  /// Syncs file and folder and gives the file its name, replacing what was there.
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error, std::size_t needed = 0) const;

  std::filesystem::path path_;
  std::filesystem::path partial_;
  int descriptor_ = -1;
};

}  // namespace spikeloom
