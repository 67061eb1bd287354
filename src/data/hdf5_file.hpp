// The one place that talks to the HDF5 C library: typed arrays and variable-length sequences, in and out. HDF5's own
// printing is off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace spikeloom {

/// What HDF5 said. Callers turn it into a UserError or ResourceError that names the file.
class Hdf5Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Hdf5Type { float16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64, uint64 };

template <class T>
constexpr Hdf5Type hdf5_type_of() {
  if constexpr (std::is_same_v<T, float>) return Hdf5Type::float32;
  if constexpr (std::is_same_v<T, double>) return Hdf5Type::float64;
  if constexpr (std::is_same_v<T, std::int8_t>) return Hdf5Type::int8;
  if constexpr (std::is_same_v<T, std::uint8_t>) return Hdf5Type::uint8;
  if constexpr (std::is_same_v<T, std::int16_t>) return Hdf5Type::int16;
  if constexpr (std::is_same_v<T, std::uint16_t>) return Hdf5Type::uint16;
  if constexpr (std::is_same_v<T, std::int32_t>) return Hdf5Type::int32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return Hdf5Type::uint32;
  if constexpr (std::is_same_v<T, std::int64_t>) return Hdf5Type::int64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return Hdf5Type::uint64;
}

/// How an array lies in the file: in one piece (`chunk` 0), or in chunks of so many elements, deflated at `deflate` (1
/// to 9) if not 0.
struct Hdf5Layout {
  std::size_t chunk = 0;
  int deflate = 0;
};

/// Owns one HDF5 identifier (hid_t).
class Hdf5Handle {
 public:
  using Close = int (*)(std::int64_t);
  Hdf5Handle() = default;
  Hdf5Handle(std::int64_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  std::int64_t id() const { return id_; }

 private:
  std::int64_t id_ = -1;
  Close close_ = nullptr;
};

/// A growing one-dimensional array whose elements are sequences of numbers, always chunked (what PyTables calls a
/// VLArray).
class Hdf5Sequences {
 public:
  /// Appends one element per entry; the bytes are numbers of the array's type, little-endian.
  void append(std::span<const std::span<const std::byte>> sequences);

 private:
  friend class Hdf5Writer;
  Hdf5Handle dataset_;
  Hdf5Handle type_;
  std::size_t element_bytes_ = 0;
  std::size_t size_ = 0;
};

/// Builds an HDF5 file in memory, so that a full disk meets our own writing and never the library's. No time stamps:
/// same calls, same bytes. Every function throws Hdf5Error; with correct calls only a lack of memory makes one fail.
class Hdf5Writer {
 public:
  Hdf5Writer();

  void create_group(const std::string& name);
  void write(const std::string& name, Hdf5Type type, std::span<const std::byte> bytes, Hdf5Layout layout = {});
  template <class T>
  void write(const std::string& name, const std::vector<T>& values, Hdf5Layout layout = {}) {
    write(name, hdf5_type_of<T>(), std::as_bytes(std::span(values)), layout);
  }
  /// UTF-8, all as long as the longest, padded with zeros.
  void write_strings(const std::string& name, const std::vector<std::string>& values);
  /// All at once, in any layout; `append` of the result may follow where it is chunked.
  Hdf5Sequences create_sequences(const std::string& name, Hdf5Type type, Hdf5Layout layout = {1024, 0});
  /// Sequences in one piece (contiguous): their number is fixed here.
  void write_sequences(const std::string& name, Hdf5Type type, std::span<const std::span<const std::byte>> sequences,
                       Hdf5Layout layout);

  /// The file as it is now; valid until the next call.
  std::span<const std::byte> image();

 private:
  Hdf5Handle file_;
};

enum class Hdf5Kind { integer, floating, other };

/// A one-dimensional array of an open file: of numbers, or of sequences of numbers.
class Hdf5Array {
 public:
  std::size_t size() const { return size_; }
  Hdf5Kind kind() const { return kind_; }
  bool sequences() const { return sequences_; }

  /// Elements [begin, begin + count) of an array of numbers, converted (whole numbers are clamped to 64 bits).
  std::vector<double> reals(std::size_t begin, std::size_t count) const;
  std::vector<std::int64_t> integers(std::size_t begin, std::size_t count) const;

  /// Elements [begin, begin + ends.size()) of an array of sequences, one after the other; sequence i ends at ends[i].
  /// All calls together give at most as many bytes as the file has: a sequence can't be compressed or shared, so more
  /// is damage.
  template <class T>
  struct Slab {
    std::vector<T> values;
    std::vector<std::size_t> ends;
  };
  void read(std::size_t begin, std::size_t count, Slab<double>& slab);
  void read(std::size_t begin, std::size_t count, Slab<std::int64_t>& slab);

 private:
  friend class Hdf5Reader;
  template <class Stored, class T>
  void read_sequences(std::size_t begin, std::size_t count, std::int64_t type, Slab<T>& slab);
  void read_block(std::size_t begin, std::size_t count, std::int64_t type, std::int64_t transfer, void* target) const;

  Hdf5Handle dataset_;
  Hdf5Handle element_;  // type of a number in the file
  Hdf5Kind kind_ = Hdf5Kind::other;
  bool sequences_ = false;
  std::size_t size_ = 0;
  std::size_t bytes_left_ = 0;
};

/// An existing HDF5 file. Every function throws Hdf5Error. A file that was made to harm can crash HDF5 1.10 itself:
/// open files of unknown origin in a process of their own (data/isolated.hpp).
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::filesystem::path& path);

  bool has(const std::string& name) const;
  /// Refuses links and data kept in other files: what is read is in this file.
  Hdf5Array array(const std::string& name) const;
  /// An array of texts, of fixed or variable length.
  std::vector<std::string> strings(const std::string& name) const;

 private:
  Hdf5Handle open(const std::string& name, std::size_t& size) const;

  Hdf5Handle file_;
  std::size_t file_bytes_ = 0;
};

}  // namespace spikeloom
