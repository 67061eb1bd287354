// read_shd in a child process: what goes through the pipe, and what the child's end means.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <spikeloom/error.hpp>
#include "data/isolated.hpp"
#include "data/shd_reader.hpp"

namespace spikeloom {
namespace {

enum class Kind : std::uint32_t { recording, user_error, out_of_memory, end };

struct Frame {
  Kind kind = Kind::end;
  std::int32_t label = 0;
  std::int32_t speaker = 0;
  std::uint32_t unused = 0;
  std::uint64_t count = 0;  // events, 8 bytes each, or characters, that follow
};

constexpr int kChannelBits = 20;
constexpr std::uint32_t kChannelMask = (1U << kChannelBits) - 1;
constexpr std::size_t kLongestText = 1 << 16;
static_assert(kLongestSeconds * 1e6 < 0x1p43, "a time and a channel fit 64 bits");

// What an intact file may take: all of it as 64-bit numbers, twice, and HDF5's own buffers; and a quarter of a second
// for each MB (234 MB took 0.9 s, Zen 4, 2026-12). The limit on time is for HDF5 running in circles, as it does on one
// damaged file in two hundred.
IsolatedLimits limits_for(std::size_t file_bytes) {
  IsolatedLimits limits;
  limits.memory_bytes = (std::size_t{512} << 20) + 12 * file_bytes;
  limits.cpu_seconds = 5 + static_cast<unsigned>(std::min<std::size_t>(file_bytes >> 22, 1'000'000));
  return limits;
}

void send_text(const IsolatedSender& sender, Kind kind, std::string text) {
  text.resize(std::min(text.size(), kLongestText));
  Frame frame;
  frame.kind = kind;
  frame.count = text.size();
  sender.send(std::as_bytes(std::span(&frame, 1)));
  sender.send(std::as_bytes(std::span(text)));
}

int produce(const std::filesystem::path& path, const ShdReadOptions& options, const IsolatedSender& sender) {
  std::vector<std::uint64_t> message;
  try {
    read_shd(path, options, [&](std::span<const Event> events, int label, int speaker) {
      constexpr std::size_t kHead = sizeof(Frame) / sizeof(std::uint64_t);
      message.resize(kHead + events.size());
      const Frame frame{Kind::recording, label, speaker, 0, events.size()};
      std::memcpy(message.data(), &frame, sizeof frame);
      std::transform(events.begin(), events.end(), message.begin() + kHead, [](const Event& event) {
        return static_cast<std::uint64_t>(event.time_us) << kChannelBits | event.channel;
      });
      sender.send(std::as_bytes(std::span(message)));
    });
    send_text(sender, Kind::end, "");
    return 0;
  } catch (const UserError& error) {
    send_text(sender, Kind::user_error, error.what());
  } catch (const std::bad_alloc&) {
    send_text(sender, Kind::out_of_memory, "");
  } catch (const std::exception& error) {
    send_text(sender, Kind::user_error, fmt::format("{}: damaged: {}", options.shown, error.what()));
  }
  return 1;
}

/// Reads frames until the child ends; true if it said that this was all. What comes from a child whose memory may be
/// damaged is checked again.
bool consume(const ShdReadOptions& options, std::size_t file_bytes, const ShdSink& sink,
             const IsolatedReceiver& receiver) {
  std::vector<std::uint64_t> packed;
  std::vector<Event> events;
  std::string text;
  for (Frame frame; receiver.receive(std::as_writable_bytes(std::span(&frame, 1)));) {
    if (frame.kind == Kind::end) return true;
    if (frame.kind == Kind::out_of_memory) {
      throw UserError(fmt::format("{}: damaged: reading it takes more than {} MB of memory", options.shown,
                                  limits_for(file_bytes).memory_bytes >> 20));
    }
    if (frame.kind == Kind::user_error && frame.count <= kLongestText) {
      text.resize(frame.count);
      if (receiver.receive(std::as_writable_bytes(std::span(text)))) throw UserError(text);
      return false;
    }
    if (frame.kind != Kind::recording || frame.count > file_bytes || frame.label < 0) return false;
    packed.resize(frame.count);
    events.resize(frame.count);
    if (!receiver.receive(std::as_writable_bytes(std::span(packed)))) return false;
    for (std::size_t i = 0; i < packed.size(); ++i) {
      events[i] = {static_cast<std::int64_t>(packed[i] >> kChannelBits),
                   static_cast<std::uint32_t>(packed[i] & kChannelMask)};
      if (events[i].channel >= static_cast<std::uint32_t>(options.channels)) return false;
    }
    sink(events, frame.label, frame.speaker);
  }
  return false;
}

}  // namespace

void read_shd_isolated(const std::filesystem::path& path, const ShdReadOptions& options, const ShdSink& sink) {
  if (options.channels < 1 || options.channels > static_cast<int>(kChannelMask) + 1) {
    throw UserError(
        fmt::format("{}: {} channels; allowed: 1 to {}", options.shown, options.channels, kChannelMask + 1));
  }
  const std::size_t file_bytes = std::filesystem::file_size(path);
  bool complete = false;
  const IsolatedEnd end = run_isolated(
      limits_for(file_bytes), [&](const IsolatedSender& sender) { return produce(path, options, sender); },
      [&](const IsolatedReceiver& receiver) { complete = consume(options, file_bytes, sink, receiver); });
  if (complete) return;
  if (end.signal == SIGKILL)
    throw ResourceError(fmt::format("{}: the process that read it was killed: out of memory?", options.shown));
  if (end.signal == SIGXCPU)
    throw UserError(fmt::format("{}: damaged: the HDF5 library doesn't come to an end on it", options.shown));
  const auto [kind, number] = end.signal != 0 ? std::pair("signal", end.signal) : std::pair("status", end.status);
  throw UserError(fmt::format("{}: damaged: the HDF5 library crashed on it ({} {})", options.shown, kind, number));
}

}  // namespace spikeloom
