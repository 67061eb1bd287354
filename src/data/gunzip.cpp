#include "data/gunzip.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <spikeloom/error.hpp>

namespace spikeloom {

UnpackedFile::UnpackedFile(const std::filesystem::path& packed, const std::function<void()>& each_megabyte) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) folder = "/tmp";
  std::string name = (folder / "spikeloom-XXXXXX").string();
  descriptor_ = ::mkstemp(name.data());
  if (descriptor_ < 0) {
    throw UserError(fmt::format("{}: can't be unpacked into {}: {}; gunzip it first", packed.string(), folder.string(),
                                std::strerror(errno)));
  }
  path_ = name;
  try {
    unpack(packed, each_megabyte);
  } catch (...) {
    ::close(descriptor_);
    ::unlink(path_.c_str());
    throw;
  }
}

UnpackedFile::~UnpackedFile() {
  ::close(descriptor_);
  ::unlink(path_.c_str());
}

void UnpackedFile::unpack(const std::filesystem::path& packed, const std::function<void()>& each_megabyte) {
  constexpr std::size_t kBlock = 1 << 20;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(packed.c_str(), "rb"), gzclose);
  if (!file) throw UserError(fmt::format("{}: can't be opened: {}", packed.string(), std::strerror(errno)));
  gzbuffer(file.get(), kBlock);
  std::vector<char> block(kBlock);
  for (;;) {
    const int got = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()));
    int status = Z_OK;
    const char* message = gzerror(file.get(), &status);
    // Z_BUF_ERROR: the file ended in the middle of the compressed data.
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      throw UserError(fmt::format("{}: damaged gzip file: {}", packed.string(),
                                  status == Z_ERRNO ? std::strerror(errno) : message));
    }
    if (got == 0) return;
    for (int done = 0; done < got;) {
      const ssize_t written = ::write(descriptor_, block.data() + done, static_cast<std::size_t>(got - done));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        throw ResourceError(fmt::format("{}: no room to unpack it as {}: {}; gunzip it first, or set TMPDIR",
                                        packed.string(), path_.string(), std::strerror(errno)));
      }
      done += static_cast<int>(written);
    }
    each_megabyte();
  }
}

}  // namespace spikeloom
