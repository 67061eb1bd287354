// Ctrl-C: the first asks the work to save and stop, the second ends the process.
#pragma once

#include <atomic>

namespace spikeloom {

/// From now on SIGINT and SIGTERM set the returned flag; the same signal a second time has its ordinary effect.
const std::atomic<bool>* stop_on_signals();

}  // namespace spikeloom
