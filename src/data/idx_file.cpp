#include "data/idx_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kUnsignedBytes = 0x0800;  // the type in the magic number; the dimensions are its last byte
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;  // Fashion-MNIST has 47 MB
constexpr std::size_t kBlock = 1 << 20;

/// A file that may be gzipped, read from its start to its end.
class IdxSource {
 public:
  explicit IdxSource(const fs::path& path) : shown_(path.string()), file_(nullptr, gzclose) {
    std::error_code error;
    if (!fs::exists(path, error)) throw UserError(fmt::format("{}: no such file", shown_));
    if (!fs::is_regular_file(path, error)) throw UserError(fmt::format("{}: not a file", shown_));
    file_.reset(gzopen(path.c_str(), "rbe"));
    if (!file_) throw UserError(fmt::format("{}: can't be opened: {}", shown_, std::strerror(errno)));
    gzbuffer(file_.get(), kBlock);
  }

  const std::string& shown() const { return shown_; }

  /// Up to `count` bytes; fewer at the end of the file only.
  std::size_t read(std::uint8_t* target, std::size_t count) {
    const int got = gzread(file_.get(), target, static_cast<unsigned>(std::min(count, kBlock)));
    int status = Z_OK;
    const char* message = gzerror(file_.get(), &status);
    // Z_BUF_ERROR: the file ended in the middle of the compressed data.
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      throw UserError(fmt::format("{}: damaged gzip data after byte {} of what it holds: {}", shown_, at_,
                                  status == Z_ERRNO       ? std::strerror(errno)
                                  : status == Z_BUF_ERROR ? "the file is cut off"
                                                          : message));
    }
    at_ += static_cast<std::uint64_t>(got);
    return static_cast<std::size_t>(got);
  }

  /// The 32-bit number that is next, big-endian; `what` it is.
  std::uint32_t number(const char* what) {
    std::array<std::uint8_t, 4> bytes{};
    const std::uint64_t start = at_;
    for (std::size_t have = 0; have < bytes.size();) {
      const std::size_t got = read(bytes.data() + have, bytes.size() - have);
      if (got == 0)
        throw UserError(
            fmt::format("{}: ends at byte {}; {} stands in bytes {} to {}", shown_, at_, what, start, start + 3));
      have += got;
    }
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
  }

  /// All that follows, which must be `count` bytes: what `needs` says.
  std::vector<std::uint8_t> rest(std::uint64_t count, const std::string& needs) {
    const std::uint64_t end = at_ + count;
    std::vector<std::uint8_t> values;
    while (values.size() < count) {
      const std::size_t have = values.size();
      values.resize(have + std::min<std::uint64_t>(kBlock, count - have));
      const std::size_t got = read(values.data() + have, values.size() - have);
      values.resize(have + got);
      if (got == 0) throw UserError(fmt::format("{}: ends at byte {}; {} need {} bytes", shown_, at_, needs, end));
    }
    std::uint8_t more = 0;
    if (read(&more, 1) != 0)
      throw UserError(fmt::format("{}: goes on after byte {}; {} need no more", shown_, end, needs));
    return values;
  }

 private:
  std::string shown_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::uint64_t at_ = 0;
};

void check_magic(IdxSource& file, std::uint32_t dimensions, const char* holds) {
  const std::uint32_t found = file.number("the magic number");
  const std::uint32_t expected = kUnsignedBytes | dimensions;
  if (found != expected)
    throw UserError(fmt::format("{}: byte 0: magic number 0x{:08x}; allowed: 0x{:08x} (IDX, {})", file.shown(), found,
                                expected, holds));
}

template <class Read>
auto with_memory(const fs::path& path, Read&& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format("{}: not enough memory to hold it", path.string()));
  }
}

IdxImages read_images(const fs::path& path) {
  IdxSource file(path);
  check_magic(file, 3, "unsigned bytes in three dimensions: images");
  const std::uint64_t count = file.number("the number of images");
  const std::uint64_t height = file.number("the height of an image");
  const std::uint64_t width = file.number("the width of an image");
  if (count == 0) throw UserError(fmt::format("{}: byte 4: 0 images; allowed: at least 1", file.shown()));
  // Each is below 2^32, so that neither product overflows once the first is known to be small.
  if (height == 0 || width == 0 || height * width > kMostIdxPixels)
    throw UserError(fmt::format("{}: byte 8: images of {} x {} pixels; allowed: 1 to {} pixels", file.shown(), width,
                                height, kMostIdxPixels));
  if (count * height * width > kMostBytes)
    throw UserError(fmt::format("{}: byte 4: {} images of {} x {} pixels; allowed: at most {} images of this size",
                                file.shown(), count, width, height, kMostBytes / (height * width)));
  IdxImages images;
  images.width = static_cast<int>(width);
  images.height = static_cast<int>(height);
  images.pixels = file.rest(count * height * width, fmt::format("{} images of {} x {} pixels", count, width, height));
  return images;
}

std::vector<std::uint8_t> read_labels(const fs::path& path) {
  IdxSource file(path);
  check_magic(file, 1, "unsigned bytes in one dimension: labels");
  const std::uint64_t count = file.number("the number of labels");
  if (count == 0 || count > kMostBytes)
    throw UserError(fmt::format("{}: byte 4: {} labels; allowed: 1 to {}", file.shown(), count, kMostBytes));
  return file.rest(count, fmt::format("{} labels", count));
}

}  // namespace

IdxImages read_idx_images(const fs::path& path) {
  return with_memory(path, [&] { return read_images(path); });
}

std::vector<std::uint8_t> read_idx_labels(const fs::path& path) {
  return with_memory(path, [&] { return read_labels(path); });
}

}  // namespace spikeloom
