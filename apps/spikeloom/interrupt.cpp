#include "interrupt.hpp"

#include <csignal>
#include <exception>

#include <spikeloom/error.hpp>
#include "console.hpp"

namespace spikeloom {
namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

extern "C" void request_stop(int) { stop_requested.store(true); }

}  // namespace

const std::atomic<bool>* stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return &stop_requested;
}

void run_interruptible(const std::function<void(ProgressListener&)>& work) {
  ConsoleListener console;
  StoppableListener listener(console, stop_on_signals(), "stopped; no file was written");
  try {
    work(listener);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception&) {
    listener.throw_if_stopped();
    throw;
  }
}

}  // namespace spikeloom
