#include "output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

int write_error = 0;  // errno of the first write to stdout that failed

void keep_error(bool failed) {
  if (failed && write_error == 0) write_error = errno ? errno : EIO;
}

}  // namespace

void print_json(const nlohmann::ordered_json& object) {
  // Paths may hold bytes that are no UTF-8; replace them rather than fail after the work is done.
  print_text(object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void print_table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  for (const auto& [name, value] : rows) print_text(fmt::format("{:<{}}  {}\n", name, width, value));
}

void print_text(std::string_view text) {
  errno = 0;
  keep_error(std::fwrite(text.data(), 1, text.size(), stdout) != text.size());
}

void finish_output() {
  errno = 0;
  keep_error(std::fflush(stdout) != 0 || std::ferror(stdout) != 0);
  if (write_error == 0 || write_error == EPIPE) return;
  throw ResourceError(fmt::format("standard output can't be written ({})", std::strerror(write_error)));
}

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:.1f} %", 100.0 * fraction) : "unknown";
}

std::string duration(double seconds) {
  if (!(seconds >= 0.0) || seconds > 1e9) return "unknown";
  if (seconds < 60.0) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace spikeloom
