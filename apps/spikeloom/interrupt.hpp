// Ctrl-C: the first asks the work to save and stop, the second ends the process.
#pragma once

#include <atomic>
#include <functional>

namespace spikeloom {

class ProgressListener;

/// From now on SIGINT and SIGTERM set the returned flag; the same signal a second time has its ordinary effect.
const std::atomic<bool>* stop_on_signals();

/// Runs work that has nothing to save, with progress on the console. After a signal it ends with Interrupted, whatever
/// else went wrong then: Ctrl-C also ends the programs that the work has started.
void run_interruptible(const std::function<void(ProgressListener&)>& work);

}  // namespace spikeloom
