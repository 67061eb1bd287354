#include "data/encode/speech.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string_view>

#include <spikeloom/error.hpp>

extern char** environ;

namespace spikeloom {
namespace {

constexpr const char* kProgram = "espeak-ng";

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  void close() {
    if (value_ >= 0) ::close(value_);
    value_ = -1;
  }

 private:
  int value_;
};

std::vector<std::byte> read_all(int descriptor) {
  constexpr std::size_t kLargestOutput = 64 << 20;
  std::vector<std::byte> bytes;
  std::array<std::byte, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw ResourceError(fmt::format("reading from {}: {}", kProgram, std::strerror(errno)));
    if (got == 0) return bytes;
    bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + got);
    if (bytes.size() > kLargestOutput) throw UserError(fmt::format("{}: endless output", kProgram));
  }
}

int spawn(std::vector<std::string>& arguments, int output, pid_t& child) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error = posix_spawnp(&child, kProgram, &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// What the program writes to its standard output. `arguments` without the program's name.
std::vector<std::byte> run_espeak(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kProgram);
  int ends[2];
  // Close-on-exec: a process that another thread starts meanwhile must not hold this pipe open.
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw ResourceError(fmt::format("no pipe to {}: {}", kProgram, std::strerror(errno)));
  Descriptor input(ends[0]);
  Descriptor output(ends[1]);
  pid_t child = 0;
  if (const int error = spawn(arguments, output.get(), child); error != 0) {
    if (error == ENOENT || error == EACCES)
      throw UserError(fmt::format("{0} is not installed; install it with: apt install {0}", kProgram));
    throw ResourceError(fmt::format("{} could not be started: {}", kProgram, std::strerror(error)));
  }
  output.close();
  std::vector<std::byte> bytes;
  std::exception_ptr failure;
  try {
    bytes = read_all(input.get());
  } catch (...) {
    failure = std::current_exception();
  }
  input.close();
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (failure) std::rethrow_exception(failure);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw UserError(fmt::format("{} failed: {}", kProgram, fmt::join(arguments, " ")));
  return bytes;
}

}  // namespace

Recording speak(const SpeechRequest& request) {
  // -z: no pause after the word. The text comes last and never begins with a dash here.
  const std::vector<std::byte> wave = run_espeak({"-v", request.voice, "-s", std::to_string(request.words_per_minute),
                                                  "-p", std::to_string(request.pitch), "-a",
                                                  std::to_string(request.amplitude), "-z", "--stdout", request.text});
  return decode_audio(wave, fmt::format("{} {}, \"{}\"", kProgram, request.voice, request.text));
}

std::vector<std::string> installed_variants() {
  const std::vector<std::byte> bytes = run_espeak({"--voices=variant"});
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  // Each line has the variant's file as "!v/name", which may hold spaces, in a column that is padded with spaces.
  std::vector<std::string> variants;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t mark = line.find("!v/");
    if (mark == std::string_view::npos) continue;
    line.remove_prefix(mark + 3);
    line = line.substr(0, line.find('('));  // other languages follow in parentheses
    line = line.substr(0, line.find_last_not_of(' ') + 1);
    variants.emplace_back(line);
  }
  std::sort(variants.begin(), variants.end());
  return variants;
}

}  // namespace spikeloom
