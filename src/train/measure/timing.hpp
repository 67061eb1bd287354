// Timing for the measuring of a machine: the best of several repetitions, for whatever else runs on the machine can
// only make one slower.
#pragma once

#include <algorithm>
#include <ctime>
#include <vector>

namespace spikeloom::measure {

inline double clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

/// Nanoseconds of the fastest call of `work`, after one that warms up. On a busy machine one lucky call proves nothing
/// and an unlucky one costs nothing: it is repeated until the best has been confirmed by four calls within 3 % of it,
/// but no longer than the budget. Of this thread's own time, or, for what several threads do together, of the wall
/// clock's.
template <class Work>
double best_ns(Work&& work, clockid_t clock = CLOCK_THREAD_CPUTIME_ID, double budget_ns = 120e6) {
  constexpr int kWanted = 5, kFewest = 8;
  work();
  std::vector<double> times;
  const double begin = clock_ns(CLOCK_MONOTONIC);
  while (true) {
    const double start = clock_ns(clock);
    work();
    times.push_back(clock_ns(clock) - start);
    const double best = *std::min_element(times.begin(), times.end());
    const auto near = std::count_if(times.begin(), times.end(), [&](double t) { return t <= 1.03 * best; });
    const bool enough = times.size() >= kFewest && near >= kWanted;
    const bool late = times.size() >= 3 && clock_ns(CLOCK_MONOTONIC) - begin > budget_ns;
    if (enough || late || times.size() >= 300) return best;
  }
}

template <class Work>
double best_wall_ns(Work&& work) {
  return best_ns(work, CLOCK_MONOTONIC);
}

/// Keeps a result, and with it the work that made it, from being optimised away.
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace spikeloom::measure
