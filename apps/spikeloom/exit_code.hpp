// What the process ends with; a contract with scripts (docs/reference/command-line.md).
#pragma once

namespace spikeloom {

enum class ExitCode {
  done = 0,
  bug = 1,            // ours
  user = 2,           // the input is wrong, and the user can mend it
  numerical = 3,      // NaN or infinity
  resource = 4,       // memory or disk ran out
  interrupted = 130,  // stopped by the user, after saving
};

}  // namespace spikeloom
