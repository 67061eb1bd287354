#include "data/isolated.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitAddressSpace = false;  // a sanitizer's shadow memory is terabytes of it
#else
constexpr bool kLimitAddressSpace = true;
#endif

constexpr int kPipeBytes = 1 << 20;  // a few recordings, so that both sides work at the same time

/// Bytes of address space this process has now.
std::size_t address_space() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void set_limit(int resource, rlim_t value) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? value : std::min(value, limit.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

/// A crash here is expected: no core file, no handlers of the program we are in, no text from the C library.
void prepare_child(pid_t parent, const IsolatedLimits& limits, std::size_t address_space_before) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGTERM, SIGPIPE})
    ::signal(signal, SIG_DFL);
  const int nowhere = ::open("/dev/null", O_RDWR);
  if (nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
  }
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, limits.cpu_seconds);
  if (kLimitAddressSpace && address_space_before > 0) set_limit(RLIMIT_AS, address_space_before + limits.memory_bytes);
}

/// The child, ended and collected however this scope is left.
class Child {
 public:
  explicit Child(pid_t process) : process_(process) {}
  ~Child() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  IsolatedEnd wait() {
    const pid_t process = std::exchange(process_, 0);
    int status = 0;
    pid_t ended = 0;
    do {
      ended = ::waitpid(process, &status, 0);
    } while (ended < 0 && errno == EINTR);
    if (ended < 0) return {};  // someone else collected it (SIGCHLD ignored): what it sent tells
    if (WIFSIGNALED(status)) return {0, WTERMSIG(status)};
    return {WEXITSTATUS(status), 0};
  }

 private:
  pid_t process_;
};

struct Descriptor {
  explicit Descriptor(int value) : number(value) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void close() {
    if (number >= 0) ::close(std::exchange(number, -1));
  }
  int number;
};

}  // namespace

void IsolatedSender::send(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) ::_exit(1);  // the parent is gone
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

bool IsolatedReceiver::receive(std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::read(descriptor_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

IsolatedEnd run_isolated(const IsolatedLimits& limits, const std::function<int(const IsolatedSender&)>& produce,
                         const std::function<void(const IsolatedReceiver&)>& consume) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw ResourceError(fmt::format("no pipe to a child process: {}", std::strerror(errno)));
  Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  ::fcntl(writing.number, F_SETPIPE_SZ, kPipeBytes);  // smaller is slower, not wrong
  const std::size_t before = address_space();
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) throw ResourceError(fmt::format("no child process to read the file in: {}", std::strerror(errno)));
  if (process == 0) {
    prepare_child(parent, limits, before);
    reading.close();
    int status = 1;
    try {
      status = produce(IsolatedSender(writing.number));
    } catch (...) {
    }
    ::_exit(status);
  }
  Child child(process);
  writing.close();
  consume(IsolatedReceiver(reading.number));
  reading.close();  // a child that still writes ends instead of waiting for us
  return child.wait();
}

}  // namespace spikeloom
