// The head of a safetensors file: which tensors it holds, without reading them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace spikeloom {

struct TensorHeader {
  std::string name;
  std::string type;  // "F32", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
};

struct CheckpointHeader {
  std::vector<TensorHeader> tensors;  // in order of the file
  std::map<std::string, std::string> metadata;
};

/// Throws UserError naming the file and what is wrong: not readable, cut off, a header that is no JSON, tensors outside
/// the file.
CheckpointHeader read_checkpoint_header(const std::filesystem::path& file);

}  // namespace spikeloom
