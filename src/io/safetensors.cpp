#include "io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include <spikeloom/error.hpp>

#include "data/durable_file.hpp"
#include "data/float16.hpp"

namespace spikeloom {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are written as they lie in memory");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 10'000'000;  // some 100,000 tensors
constexpr int kDeepestJson = 4;                       // object, tensor, shape, number
constexpr std::size_t kMostDimensions = 16;

std::optional<std::uint64_t> bytes_of(const std::string& dtype) {
  static const std::map<std::string, std::uint64_t> kBytes = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},  {"I32", 4},     {"I16", 2},    {"I8", 1},
      {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? std::nullopt : std::optional(found->second);
}

/// a * b, or nothing where it does not fit.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

std::optional<std::uint64_t> elements_of(std::span<const std::uint64_t> shape) {
  std::optional<std::uint64_t> count = 1;
  for (const std::uint64_t side : shape) {
    count = product(*count, side);
    if (!count) return count;
  }
  return count;
}

std::vector<std::uint64_t> whole_numbers(const Json& list, std::size_t most) {
  if (!list.is_array() || list.size() > most) throw std::invalid_argument("not a list of numbers");
  std::vector<std::uint64_t> numbers;
  for (const Json& number : list) {
    if (!number.is_number_unsigned()) throw std::invalid_argument("not a list of numbers");
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

template <class Stored, class Convert>
std::vector<float> converted(const std::vector<char>& bytes, Convert convert) {
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<float>(convert(stored));
  }
  return values;
}

/// Empty if the dtype is none of numbers with a point.
std::optional<std::vector<float>> to_floats(const std::string& dtype, const std::vector<char>& bytes) {
  if (dtype == "F32") return converted<float>(bytes, [](float x) { return x; });
  if (dtype == "F64") return converted<double>(bytes, [](double x) { return x; });
  if (dtype == "F16") return converted<std::uint16_t>(bytes, float16_value);
  if (dtype == "BF16")
    return converted<std::uint16_t>(bytes,
                                    [](std::uint16_t x) { return std::bit_cast<float>(std::uint32_t{x} << 16); });
  return std::nullopt;
}

}  // namespace

std::string shape_text(std::span<const std::uint64_t> shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

void SafetensorsReader::fail(const std::string& what) const {
  throw UserError(fmt::format("{}: {}", path_.string(), what));
}

SafetensorsReader::SafetensorsReader(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (!std::filesystem::exists(status)) fail("no such file; allowed: a .safetensors file");
  if (!std::filesystem::is_regular_file(status)) fail("not a file; allowed: a .safetensors file");
  const std::uint64_t size = std::filesystem::file_size(path_, error);
  std::ifstream file(path_, std::ios::binary);
  if (error || !file) fail("can't be opened");
  std::uint64_t length = 0;
  if (size < kLengthBytes || !file.read(reinterpret_cast<char*>(&length), kLengthBytes)) {
    fail(fmt::format(
        "{} bytes are too few for a safetensors file; it must start with the 8 bytes of its header's length", size));
  }
  if (length > kLongestHeader || length > size - kLengthBytes) {
    fail(fmt::format("byte 0: a header of {} bytes; allowed: at most {}", length,
                     std::min(kLongestHeader, size - kLengthBytes)));
  }
  std::string text(length, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(length))) fail("can't be read");
  parse_header(text, kLengthBytes + length, size);
  check_coverage(kLengthBytes + length, size);
}

void SafetensorsReader::parse_header(const std::string& text, std::uint64_t data_begin, std::uint64_t file_size) {
  Json header;
  try {
    header = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kDeepestJson) throw std::invalid_argument("nested too deep");
      return true;
    });
  } catch (const std::exception&) {
    fail(fmt::format("byte {}: the header is no JSON of the safetensors format", kLengthBytes));
  }
  if (!header.is_object()) fail(fmt::format("byte {}: the header is no JSON object", kLengthBytes));
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (!entry.is_object()) fail("__metadata__ is no JSON object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) fail(fmt::format("__metadata__, \"{}\": not a text", key));
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    TensorInfo tensor{name, "", {}, 0, 0};
    std::vector<std::uint64_t> offsets;
    try {
      tensor.dtype = entry.at("dtype").get<std::string>();
      tensor.shape = whole_numbers(entry.at("shape"), kMostDimensions);
      offsets = whole_numbers(entry.at("data_offsets"), 2);
      if (offsets.size() != 2) throw std::invalid_argument("not two offsets");
    } catch (const std::exception&) {
      fail(fmt::format("tensor \"{}\": needs dtype (text), shape and data_offsets (lists of whole numbers from 0)",
                       name));
    }
    const std::optional<std::uint64_t> width = bytes_of(tensor.dtype);
    if (!width)
      fail(fmt::format("tensor \"{}\": unknown dtype \"{}\"; allowed: F32, F64, F16, BF16 and whole numbers", name,
                       tensor.dtype));
    const std::uint64_t data_size = file_size - data_begin;
    if (offsets[0] > offsets[1] || offsets[1] > data_size) {
      fail(fmt::format("tensor \"{}\": data_offsets [{}, {}] lie outside the file's data; allowed: 0 to {}", name,
                       offsets[0], offsets[1], data_size));
    }
    const std::optional<std::uint64_t> count = elements_of(tensor.shape);
    const std::optional<std::uint64_t> bytes = count ? product(*count, *width) : std::nullopt;
    if (bytes != offsets[1] - offsets[0]) {
      fail(fmt::format("tensor \"{}\": shape {} of {} does not take {} bytes", name, shape_text(tensor.shape),
                       tensor.dtype, offsets[1] - offsets[0]));
    }
    tensor.begin = data_begin + offsets[0];
    tensor.end = data_begin + offsets[1];
    tensors_.push_back(std::move(tensor));
  }
}

void SafetensorsReader::check_coverage(std::uint64_t data_begin, std::uint64_t file_size) {
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = data_begin;
  for (const TensorInfo& tensor : tensors_) {
    if (tensor.begin < at) fail(fmt::format("tensor \"{}\": overlaps another at byte {}", tensor.name, tensor.begin));
    if (tensor.begin > at) fail(fmt::format("bytes {} to {} belong to no tensor", at, tensor.begin));
    at = tensor.end;
  }
  if (at != file_size) fail(fmt::format("bytes {} to {} belong to no tensor", at, file_size));
}

const TensorInfo* SafetensorsReader::find(const std::string& name) const {
  const auto found =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const TensorInfo& tensor) { return tensor.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

std::vector<float> SafetensorsReader::read(const std::string& name, std::span<const std::uint64_t> shape) const {
  const TensorInfo* tensor = find(name);
  if (!tensor) fail(fmt::format("tensor \"{}\" of shape {} is missing", name, shape_text(shape)));
  if (!std::equal(shape.begin(), shape.end(), tensor->shape.begin(), tensor->shape.end())) {
    fail(fmt::format("tensor \"{}\": shape {}; allowed: {}", name, shape_text(tensor->shape), shape_text(shape)));
  }
  std::vector<char> bytes(tensor->end - tensor->begin);
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(tensor->begin));
  if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
    fail(fmt::format("tensor \"{}\": can't be read", name));
  std::optional<std::vector<float>> values = to_floats(tensor->dtype, bytes);
  if (!values) fail(fmt::format("tensor \"{}\": dtype {}; allowed: F32, F64, F16, BF16", name, tensor->dtype));
  const auto bad = std::find_if(values->begin(), values->end(), [](float x) { return !std::isfinite(x); });
  if (bad != values->end()) {
    fail(fmt::format("tensor \"{}\", index {}: {}; allowed: finite numbers", name, bad - values->begin(), *bad));
  }
  return *std::move(values);
}

void SafetensorsWriter::add(std::string name, std::vector<std::uint64_t> shape, std::vector<float> values) {
  if (elements_of(shape) != values.size()) throw InternalError("tensor " + name + " does not fill its shape");
  tensors_.push_back({std::move(name), std::move(shape), std::move(values)});
}

void SafetensorsWriter::write(const std::filesystem::path& path) const {
  nlohmann::ordered_json header;
  header["__metadata__"] = metadata_;
  std::uint64_t at = 0;
  for (const Tensor& tensor : tensors_) {
    const std::uint64_t end = at + tensor.values.size() * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes,
              ' ');  // tensors start at a multiple of 8 bytes
  const std::uint64_t length = text.size();
  DurableFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(text)));
  for (const Tensor& tensor : tensors_) file.write(std::as_bytes(std::span(tensor.values)));
  file.commit();
}

}  // namespace spikeloom
