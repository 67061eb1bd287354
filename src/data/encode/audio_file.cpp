#include "data/encode/audio_file.hpp"

#include <fmt/format.h>
#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

constexpr int kLowestRate = 8'000;
constexpr int kHighestRate = 48'000;
constexpr int kLongestSeconds = 30;
constexpr sf_count_t kFramesPerRead = 1 << 14;
// Thirty seconds of two channels of 64-bit samples at 48 kHz are 23 MB.
constexpr std::uintmax_t kLargestFile = 32 << 20;

/// What libsndfile's virtual input needs: a position in bytes that it can't leave.
struct MemoryInput {
  std::span<const std::byte> bytes;
  sf_count_t position = 0;

  static sf_count_t length(void* self) {
    return static_cast<sf_count_t>(static_cast<MemoryInput*>(self)->bytes.size());
  }
  static sf_count_t tell(void* self) { return static_cast<MemoryInput*>(self)->position; }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }

  static sf_count_t seek(sf_count_t offset, int whence, void* self) {
    auto& input = *static_cast<MemoryInput*>(self);
    const sf_count_t size = length(self);
    const sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? input.position : size;
    input.position = std::clamp<sf_count_t>(base + std::clamp<sf_count_t>(offset, -size, size), 0, size);
    return input.position;
  }

  static sf_count_t read(void* to, sf_count_t count, void* self) {
    auto& input = *static_cast<MemoryInput*>(self);
    const sf_count_t left = length(self) - input.position;
    const sf_count_t taken = std::clamp<sf_count_t>(count, 0, left);
    if (taken > 0) std::memcpy(to, input.bytes.data() + input.position, static_cast<std::size_t>(taken));
    input.position += taken;
    return taken;
  }
};

struct CloseSound {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

void check_format(const SF_INFO& info, const std::string& name) {
  if (info.samplerate < kLowestRate || info.samplerate > kHighestRate)
    throw UserError(
        fmt::format("{}: sample rate {} Hz is outside {} .. {} Hz", name, info.samplerate, kLowestRate, kHighestRate));
  if (info.channels < 1 || info.channels > 2)
    throw UserError(fmt::format("{}: {} channels, but only mono and stereo (1 or 2) are read", name, info.channels));
}

void append_mono(const std::vector<float>& frames, sf_count_t count, int channels, std::vector<float>& samples,
                 const std::string& name) {
  for (sf_count_t i = 0; i < count; ++i) {
    const float sample =
        channels == 1 ? frames[static_cast<std::size_t>(i)]
                      : 0.5F * (frames[static_cast<std::size_t>(2 * i)] + frames[static_cast<std::size_t>(2 * i + 1)]);
    if (!std::isfinite(sample))
      throw UserError(fmt::format("{}: sample {} is {}, but must be finite", name, samples.size(), sample));
    samples.push_back(sample);
  }
}

std::uint32_t little_endian(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[at + i]);
  return value;
}

/// libsndfile takes a WAV file that was cut short for a shorter recording. Walks the chunks to the samples and compares
/// what the header promises with what is there; sizes that programs write when they don't know the end (0, and from 2
/// GB on) promise nothing.
void check_complete(std::span<const std::byte> bytes, const std::string& name) {
  constexpr std::uint32_t kUnknownFrom = 0x7f000000;
  const auto tagged = [&](std::size_t at, const char* tag) { return std::memcmp(bytes.data() + at, tag, 4) == 0; };
  if (bytes.size() < 12 || !tagged(0, "RIFF") || !tagged(8, "WAVE")) return;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::uint32_t size = little_endian(bytes, at + 4);
    if (tagged(at, "data")) {
      const std::size_t there = bytes.size() - at - 8;
      if (size < kUnknownFrom && size > there)
        throw UserError(fmt::format("{}: cut short at byte {}: {} bytes of samples promised, {} there", name,
                                    bytes.size(), size, there));
      return;
    }
    at += 8 + std::size_t{size} + size % 2;
  }
}

}  // namespace

Recording decode_audio(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.empty()) throw UserError(fmt::format("{}: the file is empty, expected WAV or FLAC audio", name));
  MemoryInput input{bytes};
  SF_VIRTUAL_IO io{MemoryInput::length, MemoryInput::seek, MemoryInput::read, MemoryInput::write, MemoryInput::tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, CloseSound> file(sf_open_virtual(&io, SFM_READ, &info, &input));
  if (!file) throw UserError(fmt::format("{}: not readable as WAV or FLAC audio ({})", name, sf_strerror(nullptr)));
  check_format(info, name);

  Recording recording;
  recording.sample_rate = info.samplerate;
  // The header's length is a claim: read until nothing comes, and only then believe it.
  std::vector<float> frames(static_cast<std::size_t>(kFramesPerRead * info.channels));
  for (sf_count_t got; (got = sf_readf_float(file.get(), frames.data(), kFramesPerRead)) > 0;) {
    append_mono(frames, got, info.channels, recording.samples, name);
    if (recording.samples.size() > static_cast<std::size_t>(kLongestSeconds) * info.samplerate)
      throw UserError(fmt::format("{}: longer than {} s", name, kLongestSeconds));
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR)
    throw UserError(
        fmt::format("{}: damaged at sample {} ({})", name, recording.samples.size(), sf_strerror(file.get())));
  if (info.seekable && info.frames > 0 && info.frames < SF_COUNT_MAX &&
      std::cmp_less(recording.samples.size(), info.frames))
    throw UserError(fmt::format("{}: ends after {} of {} samples", name, recording.samples.size(), info.frames));
  if (recording.samples.empty()) throw UserError(fmt::format("{}: holds no samples", name));
  return recording;
}

Recording read_audio(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw UserError(fmt::format("{}: no such file", name));
  if (!std::filesystem::is_regular_file(status)) throw UserError(fmt::format("{}: not a regular file", name));
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw UserError(fmt::format("{}: cannot be read ({})", name, error.message()));
  if (size > kLargestFile) throw UserError(fmt::format("{}: {} bytes, at most {} are read", name, size, kLargestFile));
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size)))
    throw UserError(fmt::format("{}: cannot be read", name));
  check_complete(bytes, name);
  return decode_audio(bytes, name);
}

}  // namespace spikeloom
