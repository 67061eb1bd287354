// How long work in the library tells the outside how far it is. The library never prints: the command line draws bars,
// tests listen.
#pragma once

#include <cstdint>
#include <string_view>

namespace spikeloom {

class ProgressListener {
 public:
  virtual ~ProgressListener() = default;
  /// `done` of `total` units of the named work are finished; `detail` is a short text for the end of the line. Called
  /// from one thread at a time.
  virtual void progress(std::string_view work, std::uint64_t done, std::uint64_t total, std::string_view detail) = 0;
  /// Something the user should know although the work goes on: one line, without a final full stop or line break.
  virtual void warning(std::string_view text) = 0;
  /// A line worth keeping (an epoch's summary, say).
  virtual void note(std::string_view text) = 0;
};

/// A listener that ignores everything.
class SilentListener final : public ProgressListener {
 public:
  void progress(std::string_view, std::uint64_t, std::uint64_t, std::string_view) override {}
  void warning(std::string_view) override {}
  void note(std::string_view) override {}
};

}  // namespace spikeloom
