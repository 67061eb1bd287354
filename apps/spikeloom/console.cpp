#include "console.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "output.hpp"

namespace spikeloom {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(10);  // log files should not fill up
constexpr int kBarWidth = 24;

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && kind && std::string_view(kind) != "dumb";
}

double share(std::uint64_t done, std::uint64_t total) {
  return total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

}  // namespace

ConsoleListener::ConsoleListener() : terminal_(is_terminal()) {}

ConsoleListener::~ConsoleListener() { erase(); }

void ConsoleListener::progress(std::string_view work, std::uint64_t done, std::uint64_t total,
                               std::string_view detail) {
  const Clock::time_point now = Clock::now();
  if (work != work_ || done < last_done_) {
    work_ = work;
    first_done_ = done;
    started_ = now;
    shown_ = terminal_ ? Clock::time_point{} : now;
  }
  last_done_ = done;
  if (done >= total) return erase();
  if (now - shown_ < (terminal_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine))) return;
  shown_ = now;
  const double part = share(done, total);
  const std::string rest = fmt::format("{:3.0f} %{}", 100.0 * part, remaining(done, total, now));
  if (!terminal_) {
    fmt::print(stderr, "{}: {}/{}, {}{}{}\n", work_, done, total, rest, detail.empty() ? "" : "  ", detail);
    return;
  }
  const int filled = static_cast<int>(part * kBarWidth);
  draw(fmt::format("{} [{:#<{}}{:.<{}}] {}", work_, "", filled, "", kBarWidth - filled, rest), detail);
}

std::string ConsoleListener::remaining(std::uint64_t done, std::uint64_t total, Clock::time_point now) const {
  if (done <= first_done_) return "";
  const double elapsed = std::chrono::duration<double>(now - started_).count();
  return "  " + duration(elapsed * static_cast<double>(total - done) / static_cast<double>(done - first_done_)) +
         " left";
}

void ConsoleListener::warning(std::string_view text) {
  erase();
  fmt::print(stderr, "spikeloom: warning: {}\n", one_line(text));
}

void ConsoleListener::note(std::string_view text) {
  erase();
  fmt::print(stderr, "{}\n", one_line(text));
}

/// One line if both fit, else two.
void ConsoleListener::draw(std::string_view bar, std::string_view detail) {
  // One column is left free: a terminal wraps when the last one is filled, and a wrapped line can't be erased.
  const auto width = static_cast<std::size_t>(terminal_width() - 1);
  const bool together = bar.size() + 2 + detail.size() <= width;
  erase();
  if (together) {
    fmt::print(stderr, "{}  {}", bar, detail);
  } else {
    fmt::print(stderr, "{}\n  {}", bar.substr(0, width), detail.substr(0, width - 2));
  }
  std::fflush(stderr);
  lines_ = together ? 1 : 2;
}

void ConsoleListener::erase() {
  constexpr std::string_view kEraseLine = "\r\x1b[K";
  constexpr std::string_view kLineUp = "\x1b[1A";
  for (; lines_ > 0; --lines_) fmt::print(stderr, "{}{}", kEraseLine, lines_ > 1 ? kLineUp : "");
  std::fflush(stderr);
}

}  // namespace spikeloom
