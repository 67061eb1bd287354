// Progress on stderr: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "core/progress.hpp"

namespace spikeloom {

class ConsoleListener final : public ProgressListener {
 public:
  ConsoleListener();
  ~ConsoleListener() override;
  ConsoleListener(const ConsoleListener&) = delete;
  ConsoleListener& operator=(const ConsoleListener&) = delete;

  void progress(std::string_view work, std::uint64_t done, std::uint64_t total, std::string_view detail) override;
  void warning(std::string_view text) override;
  void note(std::string_view text) override;

 private:
  using Clock = std::chrono::steady_clock;

  std::string remaining(std::uint64_t done, std::uint64_t total, Clock::time_point now) const;
  void draw(std::string_view bar, std::string_view detail);
  void erase();

  bool terminal_;
  int lines_ = 0;  // of the bar, on the screen
  std::string work_;
  std::uint64_t first_done_ = 0;  // work may start in the middle (a resumed run)
  std::uint64_t last_done_ = 0;
  Clock::time_point started_;
  Clock::time_point shown_;
};

}  // namespace spikeloom
