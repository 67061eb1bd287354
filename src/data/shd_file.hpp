// Writes recordings in exactly the layout of the Spiking Heidelberg Digits (MODELS: SHD), so that tools for SHD and SSC
// read them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

/// Who spoke: a row of extra/meta_info.
struct ShdSpeaker {
  std::string gender;             // "f", "m", or what is known
  std::uint16_t age = 0;          // years; 0: unknown
  std::uint16_t body_height = 0;  // cm; 0: unknown
};

struct ShdWriterOptions {
  int channels = 700;  // events at or beyond are refused
};

/// Collects recordings and writes the file when finished: `spikes/times` (variable-length float16, seconds),
/// `spikes/units` (variable-length uint16), `labels`, `extra/speaker`, `extra/keys`, `extra/meta_info/{gender, age,
/// body_height}`. The same calls write the same bytes.
///
/// The file is put together in memory (4 bytes an event), and reaches its name whole or not at all; without finish()
/// nothing is left.
class ShdWriter {
 public:
  /// Throws UserError if the file can't be created there, ResourceError if the disk is full.
  explicit ShdWriter(const std::filesystem::path& path, ShdWriterOptions options = {});
  ~ShdWriter();
  ShdWriter(const ShdWriter&) = delete;
  ShdWriter& operator=(const ShdWriter&) = delete;

  /// Appends a recording; the order of events is kept. Times are rounded to the nearest half. Throws InternalError for
  /// a channel, time, label or speaker that the layout can't hold, ResourceError when memory runs out.
  void add(std::span<const Event> events, int label, int speaker);
  /// The same from times in seconds and channels, one each per event.
  void add(std::span<const double> times_s, std::span<const std::uint16_t> units, int label, int speaker);

  /// Recordings so far.
  std::size_t size() const;

  /// Writes the file. `keys` is the word of each label, `speakers` one row per speaker number; both may be empty.
  /// Throws ResourceError, UserError.
  void finish(const std::vector<std::string>& keys, const std::vector<ShdSpeaker>& speakers);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace spikeloom
