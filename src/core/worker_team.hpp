// A fixed team of pinned threads. One parallel region at a time; its end is a barrier. Worker 0 is the calling thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace spikeloom {

class WorkerTeam {
 public:
  /// `workers` >= 1. With `pin`, worker i is bound to the i-th core that this process may use, as long as there are
  /// enough of them. Throws ResourceError if the system has too few threads.
  explicit WorkerTeam(int workers, bool pin = true);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  int size() const;

  /// Runs `work(worker)` once on every worker and returns when all are done. The first exception of the lowest worker
  /// is rethrown here.
  void run(const std::function<void(int worker)>& work);

  /// Inside run: returns when every worker has called it as often as this one, for regions that need barriers of their
  /// own. False: a worker has failed and will not come; the caller should return.
  bool meet();

  /// Runs `work(item, worker)` for every item of [0, count), handed out one by one to whoever is free. Results must not
  /// depend on who does what.
  void for_each(std::size_t count, const std::function<void(std::size_t item, int worker)>& work);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

/// The number of cores this process may run on.
int available_cores();
/// The operating system's numbers of these, ascending: worker i of a pinned team is on the i-th.
std::vector<int> available_cpus();

}  // namespace spikeloom
