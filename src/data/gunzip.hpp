// Whole-file gzip, as SHD and SSC are distributed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace spikeloom {

/// An unpacked copy in the folder for temporary files, removed when this goes.
class UnpackedFile {
 public:
  /// Throws UserError naming `path` if it is damaged or cut off, ResourceError if there is no room (TMPDIR says where
  /// it goes), and what `each_megabyte` throws.
  UnpackedFile(const std::filesystem::path& path, const std::function<void()>& each_megabyte);
  ~UnpackedFile();
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  void unpack(const std::filesystem::path& packed, const std::function<void()>& each_megabyte);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace spikeloom
