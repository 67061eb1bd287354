#include "checkpoint_header.hpp"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

using nlohmann::ordered_json;

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as in the safetensors library

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw UserError(fmt::format("{}: not a whole safetensors file: {}", file.string(), what));
}

std::uint64_t little_endian(const std::array<unsigned char, 8>& bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

/// Bytes of an element, or 0 for a type that the format does not have.
std::uint64_t element_bytes(const std::string& type) {
  static const std::map<std::string, std::uint64_t> kBytes{{"BOOL", 1}, {"U8", 1},   {"I8", 1},  {"I16", 2}, {"U16", 2},
                                                           {"F16", 2},  {"BF16", 2}, {"I32", 4}, {"U32", 4}, {"F32", 4},
                                                           {"F64", 8},  {"I64", 8},  {"U64", 8}};
  const auto found = kBytes.find(type);
  return found == kBytes.end() ? 0 : found->second;
}

TensorHeader to_tensor(const std::filesystem::path& file, const std::string& name, const ordered_json& entry,
                       std::uint64_t data_bytes) {
  TensorHeader tensor;
  tensor.name = name;
  std::array<std::uint64_t, 2> offsets{};
  try {
    tensor.type = entry.at("dtype").get<std::string>();
    for (const ordered_json& extent : entry.at("shape")) tensor.shape.push_back(extent.get<std::uint64_t>());
    offsets = entry.at("data_offsets").get<std::array<std::uint64_t, 2>>();
  } catch (const nlohmann::json::exception&) {
    fail(file, fmt::format("tensor {} lacks a proper dtype, shape or data_offsets", name));
  }
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes) {
    fail(file, fmt::format("tensor {} lies at bytes {} to {} of {}", name, offsets[0], offsets[1], data_bytes));
  }
  tensor.bytes = offsets[1] - offsets[0];
  std::uint64_t expected = element_bytes(tensor.type);
  for (const std::uint64_t extent : tensor.shape) {
    if (extent != 0 && expected > kLargestHeader * kLargestHeader / extent)
      fail(file, fmt::format("the shape of tensor {} is too large", name));
    expected *= extent;
  }
  if (expected != tensor.bytes) {
    fail(file, fmt::format("tensor {} ({}) has {} bytes, but its shape asks for {}", name, tensor.type, tensor.bytes,
                           expected));
  }
  return tensor;
}

}  // namespace

CheckpointHeader read_checkpoint_header(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) throw UserError(fmt::format("{}: can't be read ({})", file.string(), std::strerror(errno)));
  const auto size = static_cast<std::uint64_t>(stream.tellg());
  stream.seekg(0);
  std::array<unsigned char, 8> prefix{};
  if (size < 8 || !stream.read(reinterpret_cast<char*>(prefix.data()), 8)) fail(file, fmt::format("{} bytes", size));
  const std::uint64_t length = little_endian(prefix);
  if (length > size - 8 || length > kLargestHeader)
    fail(file, fmt::format("a header of {} bytes in a file of {}", length, size));
  std::string text(length, '\0');
  if (!stream.read(text.data(), static_cast<std::streamsize>(length))) fail(file, "the header can't be read");
  const ordered_json header = ordered_json::parse(text, nullptr, false);
  if (!header.is_object()) fail(file, "the header is no JSON object");

  CheckpointHeader result;
  for (const auto& [name, entry] : header.items()) {
    if (name != "__metadata__") {
      result.tensors.push_back(to_tensor(file, name, entry, size - 8 - length));
      continue;
    }
    if (!entry.is_object()) fail(file, "__metadata__ is no JSON object");
    for (const auto& [key, value] : entry.items())
      result.metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return result;
}

}  // namespace spikeloom
