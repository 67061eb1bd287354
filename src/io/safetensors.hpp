// The safetensors format: eight bytes of header length (little-endian), a JSON header, then the tensors' bytes. Reading
// trusts nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace spikeloom {

struct TensorInfo {
  std::string name;
  std::string dtype;  // "F32", "F16", "I64", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // bytes from the start of the file
  std::uint64_t end = 0;
};

/// "(3, 4)".
std::string shape_text(std::span<const std::uint64_t> shape);

/// A file whose header was read and checked. Tensors are read when asked for.
class SafetensorsReader {
 public:
  /// Throws UserError naming the file and what is wrong: not a file, too short, header too long or no JSON, an unknown
  /// dtype, a shape that does not fit its bytes, tensors that overlap, leave holes or lie outside the file.
  explicit SafetensorsReader(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  /// In the order of their bytes.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null if there is none of this name.
  const TensorInfo* find(const std::string& name) const;
  /// The numbers of a tensor of F32, F64, F16 or BF16. Throws UserError: no such tensor, another shape, another dtype,
  /// NaN or infinity (with its index).
  std::vector<float> read(const std::string& name, std::span<const std::uint64_t> shape) const;

 private:
  void parse_header(const std::string& text, std::uint64_t data_begin, std::uint64_t file_size);
  void check_coverage(std::uint64_t data_begin, std::uint64_t file_size);
  [[noreturn]] void fail(const std::string& what) const;

  std::filesystem::path path_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Collects float32 tensors and writes them as one file, whole or not at all.
class SafetensorsWriter {
 public:
  void add(std::string name, std::vector<std::uint64_t> shape, std::vector<float> values);
  void set(std::string key, std::string value) { metadata_[std::move(key)] = std::move(value); }
  /// Written beside, synced, renamed. Throws UserError or ResourceError and then leaves what was at `path`.
  void write(const std::filesystem::path& path) const;

 private:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> shape;
    std::vector<float> values;
  };
  std::vector<Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace spikeloom
