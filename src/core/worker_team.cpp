#include "core/worker_team.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <spikeloom/error.hpp>
#include "core/aligned_buffer.hpp"

namespace spikeloom {
namespace {

// Spinning this often (some microseconds) before sleeping keeps the gap between two layers short, and still lets a team
// that is larger than the machine, or a machine that is shared, make progress.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits until `value` is no longer `old`.
void wait_while_equal(const std::atomic<unsigned>& value, unsigned old, int spins = kSpins) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

void pin_to_core(pthread_t thread, int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || index >= CPU_COUNT(&allowed)) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || index-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    pthread_setaffinity_np(thread, sizeof one, &one);  // failing costs speed, not correctness
    return;
  }
}

}  // namespace

struct WorkerTeam::Shared {
  explicit Shared(int count) { errors.resize(count); }
  /// Here, not in the team: it also ends the helpers of a team for which the system had too few threads.
  ~Shared() {
    stop.store(true, std::memory_order_release);
    region.fetch_add(1, std::memory_order_acq_rel);
    region.notify_all();
    for (std::thread& helper : helpers) helper.join();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  void perform(int worker) {
    try {
      (*work)(worker);
    } catch (...) {
      errors[worker] = std::current_exception();
      failed.store(true, std::memory_order_release);
      meeting.fetch_add(1, std::memory_order_acq_rel);
      meeting.notify_all();
    }
  }

  alignas(kCacheLine) std::atomic<unsigned> region{0};      // counts parallel regions; a change starts one
  alignas(kCacheLine) std::atomic<unsigned> unfinished{0};  // helpers still inside the region
  alignas(kCacheLine) std::atomic<bool> stop{false};
  alignas(kCacheLine) std::atomic<unsigned> arrived{0};  // workers that wait in meet()
  alignas(kCacheLine) std::atomic<unsigned> meeting{0};  // counts meetings, and failures, which end one too
  std::atomic<bool> failed{false};
  int meeting_spins = kSpins;
  const std::function<void(int)>* work = nullptr;
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> helpers;
};

WorkerTeam::WorkerTeam(int workers, bool pin) {
  if (workers < 1) throw InternalError("a worker team needs at least one worker");
  shared_ = std::make_unique<Shared>(workers);
  shared_->helpers.reserve(workers - 1);
  pin = pin && workers <= available_cores() && workers > 1;
  if (workers > available_cores()) shared_->meeting_spins = 0;  // whoever is waited for needs the core
  Shared* shared = shared_.get();
  const auto help = [shared](int worker) {
    for (unsigned seen = 0;;) {
      wait_while_equal(shared->region, seen);
      ++seen;
      if (shared->stop.load(std::memory_order_acquire)) return;
      shared->perform(worker);
      if (shared->unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) shared->unfinished.notify_one();
    }
  };
  for (int worker = 1; worker < workers; ++worker) {
    try {
      shared->helpers.emplace_back(help, worker);
    } catch (const std::system_error& error) {
      throw ResourceError("no more than " + std::to_string(worker) + " of " + std::to_string(workers) +
                          " threads can be started (" + error.code().message() +
                          "); a smaller engine.threads or --threads needs fewer");
    }
    // Worker 0 is the caller's own thread and is left where the caller wants it; helpers take the cores from 1 on.
    if (pin) pin_to_core(shared->helpers.back().native_handle(), worker);
  }
}

WorkerTeam::~WorkerTeam() = default;

int WorkerTeam::size() const { return static_cast<int>(shared_->errors.size()); }

void WorkerTeam::run(const std::function<void(int)>& work) {
  Shared& shared = *shared_;
  shared.work = &work;
  shared.failed.store(false, std::memory_order_relaxed);
  shared.arrived.store(0, std::memory_order_relaxed);
  const auto helpers = static_cast<unsigned>(shared.helpers.size());
  if (helpers > 0) {
    shared.unfinished.store(helpers, std::memory_order_release);
    shared.region.fetch_add(1, std::memory_order_acq_rel);
    shared.region.notify_all();
  }
  shared.perform(0);
  for (unsigned left; (left = shared.unfinished.load(std::memory_order_acquire)) != 0;)
    wait_while_equal(shared.unfinished, left);
  for (std::exception_ptr& error : shared.errors) {
    if (!error) continue;
    const std::exception_ptr first = std::exchange(error, nullptr);
    for (std::exception_ptr& other : shared.errors) other = nullptr;
    std::rethrow_exception(first);
  }
}

bool WorkerTeam::meet() {
  Shared& shared = *shared_;
  // Read before `failed` and before arriving: whatever ends this meeting from here on changes it.
  const unsigned current = shared.meeting.load(std::memory_order_acquire);
  if (shared.failed.load(std::memory_order_acquire)) return false;
  if (shared.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<unsigned>(size())) {
    shared.arrived.store(0, std::memory_order_relaxed);
    shared.meeting.fetch_add(1, std::memory_order_acq_rel);
    shared.meeting.notify_all();
  } else {
    wait_while_equal(shared.meeting, current, shared.meeting_spins);
  }
  return !shared.failed.load(std::memory_order_acquire);
}

void WorkerTeam::for_each(std::size_t count, const std::function<void(std::size_t, int)>& work) {
  if (size() == 1 || count <= 1) {
    for (std::size_t item = 0; item < count; ++item) work(item, 0);
    return;
  }
  alignas(kCacheLine) std::atomic<std::size_t> next{0};
  run([&](int worker) {
    for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(item, worker);
  });
}

int available_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::vector<int> available_cpus() {
  std::vector<int> cpus;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace spikeloom
