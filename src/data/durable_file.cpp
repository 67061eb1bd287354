#include "data/durable_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <spikeloom/error.hpp>

namespace spikeloom {

DurableFile::DurableFile(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code ignored;
  if (path_.filename().empty() || std::filesystem::is_directory(path_, ignored)) {
    throw UserError(fmt::format("{}: is a folder; name a file to write", path_.string()));
  }
  partial_ = path_;
  partial_ += fmt::format(".partial-{}", ::getpid());
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("can't be created", errno);
}

DurableFile::~DurableFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

void DurableFile::write(std::span<const std::byte> bytes) {
  const std::size_t needed = bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("can't be written", errno, needed);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void DurableFile::commit() {
  if (::fsync(descriptor_) != 0) fail("can't be synced", errno);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail("can't be put in its place", errno);
  ::close(std::exchange(descriptor_, -1));
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // the data is safe; only the name may be lost by a crash right now
  ::fsync(directory);
  ::close(directory);
}

void DurableFile::fail(const char* what, int error, std::size_t needed) const {
  if (error == ENOSPC || error == EDQUOT) {
    throw ResourceError(
        needed == 0 ? fmt::format("{}: {}: the disk is full", path_.string(), what)
                    : fmt::format("{}: {}: the disk is full; {} bytes are needed", path_.string(), what, needed));
  }
  throw UserError(fmt::format("{}: {}: {}", path_.string(), what, std::strerror(error)));
}

}  // namespace spikeloom
