// How long work in the library tells the outside how far it is. The library never prints: the command line draws bars,
// tests listen.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <spikeloom/error.hpp>

namespace spikeloom {

class ProgressListener {
 public:
  virtual ~ProgressListener() = default;
  /// `done` of `total` units of the named work are finished; `detail` is a short text for the end of the line. Called
  /// from one thread at a time. What it throws ends the work.
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

/// Passes on what it hears; once `stop` is set, the next progress() ends the work by throwing Interrupted with `text`.
/// For work that has nothing to save. Both arguments must outlive it; a null `stop` is never set.
class StoppableListener final : public ProgressListener {
 public:
  StoppableListener(ProgressListener& listener, const std::atomic<bool>* stop, std::string text)
      : listener_(listener), stop_(stop), text_(std::move(text)) {}
  void progress(std::string_view work, std::uint64_t done, std::uint64_t total, std::string_view detail) override {
    throw_if_stopped();
    listener_.progress(work, done, total, detail);
  }
  void warning(std::string_view text) override { listener_.warning(text); }
  void note(std::string_view text) override { listener_.note(text); }
  void throw_if_stopped() const {
    if (stop_ && stop_->load(std::memory_order_relaxed)) throw Interrupted(text_);
  }

 private:
  ProgressListener& listener_;
  const std::atomic<bool>* stop_;
  std::string text_;
};

}  // namespace spikeloom
