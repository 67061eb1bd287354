// Files for the tests of data/: SHD-layout files of any kind, right or wrong, made with the HDF5 wrapper.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <spikeloom/dataset.hpp>
#include <spikeloom/error.hpp>
#include "data/float16.hpp"
#include "data/hdf5_file.hpp"
#include "support/temporary_folder.hpp"

namespace spikeloom::testing {

inline std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  write_bytes(path, std::as_bytes(std::span(text)));
}

/// The bytes of numbers in a type of the file.
inline std::vector<std::byte> encoded(Hdf5Type type, const std::vector<double>& values) {
  std::vector<std::byte> bytes;
  const auto push = [&](auto value) {
    const auto part = std::as_bytes(std::span(&value, 1));
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  for (const double value : values) {
    switch (type) {
      case Hdf5Type::float16:
        push(float16_bits(value));
        break;
      case Hdf5Type::float32:
        push(static_cast<float>(value));
        break;
      case Hdf5Type::float64:
        push(value);
        break;
      case Hdf5Type::int8:
        push(static_cast<std::int8_t>(value));
        break;
      case Hdf5Type::uint8:
        push(static_cast<std::uint8_t>(value));
        break;
      case Hdf5Type::int16:
        push(static_cast<std::int16_t>(value));
        break;
      case Hdf5Type::uint16:
        push(static_cast<std::uint16_t>(value));
        break;
      case Hdf5Type::int32:
        push(static_cast<std::int32_t>(value));
        break;
      case Hdf5Type::uint32:
        push(static_cast<std::uint32_t>(value));
        break;
      case Hdf5Type::int64:
        push(static_cast<std::int64_t>(value));
        break;
      case Hdf5Type::uint64:
        push(static_cast<std::uint64_t>(value));
        break;
    }
  }
  return bytes;
}

/// An SHD-layout file as plain values: change one, save it, and see what the reader says.
struct ShdFile {
  std::vector<std::vector<double>> times;
  std::vector<std::vector<double>> units;
  std::vector<double> labels;
  std::optional<std::vector<double>> speakers;
  Hdf5Type time_type = Hdf5Type::float16;
  Hdf5Type unit_type = Hdf5Type::uint16;
  Hdf5Type label_type = Hdf5Type::uint16;
  Hdf5Layout layout;
  bool with_times = true;
  bool with_units = true;
  bool with_labels = true;

  void save(const std::filesystem::path& path) const {
    Hdf5Writer file;
    file.create_group("spikes");
    if (with_times) save_sequences(file, "spikes/times", time_type, times);
    if (with_units) save_sequences(file, "spikes/units", unit_type, units);
    if (with_labels) file.write("labels", label_type, encoded(label_type, labels), layout);
    if (speakers) {
      file.create_group("extra");
      file.write("extra/speaker", Hdf5Type::uint16, encoded(Hdf5Type::uint16, *speakers));
    }
    write_bytes(path, file.image());
  }

 private:
  void save_sequences(Hdf5Writer& file, const std::string& name, Hdf5Type type,
                      const std::vector<std::vector<double>>& values) const {
    std::vector<std::vector<std::byte>> bytes;
    for (const std::vector<double>& sequence : values) bytes.push_back(encoded(type, sequence));
    const std::vector<std::span<const std::byte>> parts(bytes.begin(), bytes.end());
    file.write_sequences(name, type, parts, layout);
  }
};

/// Three recordings of three classes, the second one empty, events in no order.
inline ShdFile small_shd_file() {
  ShdFile file;
  file.times = {{0.25, 0.015625, 0.5}, {}, {0.75, 0.125}};
  file.units = {{7, 699, 0}, {}, {12, 12}};
  file.labels = {2, 0, 1};
  file.speakers = {{3, 4, 3}};
  return file;
}

/// The text of the UserError that reading `path` throws; a failure of the test if it throws none.
inline std::string refusal(const std::filesystem::path& path, const ReadOptions& options = {}) {
  try {
    read_dataset(path, options);
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << path << " was read";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace spikeloom::testing
