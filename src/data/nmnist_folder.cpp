#include "data/nmnist_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecordBytes = 5;
constexpr int kOverflowMark = 240;
constexpr std::int64_t kOverflowTime = 1 << 13;
constexpr std::uintmax_t kLargestFile = std::uintmax_t{256} << 20;  // a recording has some 20 KB
constexpr std::size_t kLongestNumber = 18;                          // digits that surely fit 64 bits
constexpr int kLargestLabel = 65535;

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= kLongestNumber &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!is_hidden(it->path())) entries.push_back(*it);
  }
  if (error) throw UserError(fmt::format("{}: can't be listed: {}", folder.string(), error.message()));
  return entries;
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

/// "00042.bin" before "100.bin", then whatever has no number, by name.
bool before(const fs::path& a, const fs::path& b) {
  const std::string stem_a = a.stem().string();
  const std::string stem_b = b.stem().string();
  const bool number_a = is_number(stem_a);
  const bool number_b = is_number(stem_b);
  if (number_a != number_b) return number_a;
  if (number_a) {
    const auto value_a = std::stoull(stem_a);
    const auto value_b = std::stoull(stem_b);
    if (value_a != value_b) return value_a < value_b;
  }
  return a.filename() < b.filename();
}

/// Adds the recordings of a folder of label folders; files beside the label folders (a README, say) are none.
void list_labels(const fs::path& folder, std::vector<NmnistFile>& files) {
  std::vector<std::pair<int, fs::path>> labels;
  for (const fs::directory_entry& entry : entries_of(folder)) {
    if (!is_folder(entry)) continue;
    const std::string name = entry.path().filename().string();
    if (!is_number(name) || std::stoull(name) > kLargestLabel) {
      throw UserError(fmt::format("{}: not a label; allowed: folders named 0 to {}, with .bin files",
                                  entry.path().string(), kLargestLabel));
    }
    labels.emplace_back(std::stoi(name), entry.path());
  }
  std::sort(labels.begin(), labels.end());
  for (const auto& [label, path] : labels) {
    std::vector<fs::path> recordings;
    for (const fs::directory_entry& entry : entries_of(path)) {
      if (entry.path().extension() != ".bin")
        throw UserError(fmt::format("{}: not a recording; allowed: .bin files", entry.path().string()));
      recordings.push_back(entry.path());
    }
    std::sort(recordings.begin(), recordings.end(), before);
    for (fs::path& recording : recordings) files.push_back({std::move(recording), label});
  }
}

std::vector<std::byte> contents(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) throw UserError(fmt::format("{}: not a file", path.string()));
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw UserError(fmt::format("{}: can't be read: {}", path.string(), error.message()));
  if (size > kLargestFile)
    throw UserError(
        fmt::format("{}: {} bytes; allowed: at most {} for one recording", path.string(), size, kLargestFile));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) throw UserError(fmt::format("{}: can't be opened: {}", path.string(), std::strerror(errno)));
  std::vector<std::byte> bytes(size);
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    throw UserError(fmt::format("{}: can't be read to its end, byte {}", path.string(), size));
  }
  return bytes;
}

}  // namespace

std::vector<Event> decode_nmnist(std::span<const std::byte> bytes, const std::string& shown) {
  if (bytes.size() % kRecordBytes != 0) {
    throw UserError(fmt::format("{}: {} bytes, the event at byte {} is cut off; allowed: a multiple of {}", shown,
                                bytes.size(), bytes.size() / kRecordBytes * kRecordBytes, kRecordBytes));
  }
  std::vector<Event> events;
  events.reserve(bytes.size() / kRecordBytes);
  std::int64_t base = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[at + i]); };
    const std::uint32_t x = byte(0);
    const std::uint32_t y = byte(1);
    if (y == kOverflowMark) {
      base += kOverflowTime;
      continue;
    }
    if (x >= kNmnistSide || y >= kNmnistSide) {
      const bool in_x = x >= kNmnistSide;
      throw UserError(fmt::format("{}: byte {}: {} = {}; allowed: 0 to {}", shown, in_x ? at : at + 1, in_x ? 'x' : 'y',
                                  in_x ? x : y, kNmnistSide - 1));
    }
    const std::uint32_t polarity = byte(2) >> 7;
    const std::uint32_t time = (byte(2) & 0x7FU) << 16 | byte(3) << 8 | byte(4);
    events.push_back({base + time, (polarity * kNmnistSide + y) * kNmnistSide + x});
  }
  return events;
}

std::vector<NmnistFile> list_nmnist(const fs::path& folder, DataPart part) {
  std::error_code ignored;
  const fs::path train = folder / "Train";
  const fs::path test = folder / "Test";
  const bool has_train = fs::is_directory(train, ignored);
  const bool has_test = fs::is_directory(test, ignored);
  std::vector<NmnistFile> files;
  if (!has_train && !has_test) {
    list_labels(folder, files);
  } else {
    if ((part == DataPart::train && !has_train) || (part == DataPart::test && !has_test)) {
      throw UserError(fmt::format("{}: has no folder {}", folder.string(), part == DataPart::train ? "Train" : "Test"));
    }
    if (has_train && part != DataPart::test) list_labels(train, files);
    if (has_test && part != DataPart::train) list_labels(test, files);
  }
  if (files.empty()) {
    throw UserError(fmt::format(
        "{}: no recordings; an N-MNIST folder has Train and Test, or label folders 0, 1, ... with .bin files",
        folder.string()));
  }
  return files;
}

void read_nmnist(const fs::path& folder, DataPart part, int classes,
                 const std::function<void(std::span<const Event>, int, const fs::path&)>& sink) {
  const std::vector<NmnistFile> files = list_nmnist(folder, part);
  for (const NmnistFile& file : files) {
    if (classes > 0 && file.label >= classes) {
      throw UserError(
          fmt::format("{}: label {}; allowed: 0 to {}", file.path.parent_path().string(), file.label, classes - 1));
    }
  }
  for (const NmnistFile& file : files)
    sink(decode_nmnist(contents(file.path), file.path.string()), file.label, file.path);
}

}  // namespace spikeloom
