// The kinds of failure that leave the library. It neither prints nor exits; the command line turns them into one line
// and an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace spikeloom {

/// The user's input is wrong and the user can mend it (exit code 2). The text names file, place, value and allowed
/// range.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// NaN or infinity in loss, gradient or weights (exit code 3). The text names layer, step and parameter.
class NumericalError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Memory or disk ran out (exit code 4). The text says how much was needed, where known.
class ResourceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The user stopped the work, and it was saved (exit code 130).
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A bug of ours.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace spikeloom
