// Runs work that may crash or run away in a child process, and hands over what it makes, piece by piece.
//
// Why: of 4,000 small SHD files with one to eight damaged places, HDF5 1.10.8 crashed on 80 and ran in circles on 21
// (AddressSanitizer: reading global heaps, H5HG_read, for the most part); no check before it can rule that out. The
// child reads while the parent bins.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace spikeloom {

/// The child's side: what is sent arrives in order.
class IsolatedSender {
 public:
  explicit IsolatedSender(int descriptor) : descriptor_(descriptor) {}
  void send(std::span<const std::byte> bytes) const;

 private:
  int descriptor_;
};

/// The parent's side.
class IsolatedReceiver {
 public:
  explicit IsolatedReceiver(int descriptor) : descriptor_(descriptor) {}
  /// Fills `bytes`; false if the child ended before.
  bool receive(std::span<std::byte> bytes) const;

 private:
  int descriptor_;
};

struct IsolatedLimits {
  std::size_t memory_bytes = std::size_t{1} << 30;  // that the child may add to what this process has
  unsigned cpu_seconds = 60;
};

/// How the child ended: by itself, with this status, or by this signal (0: by none).
struct IsolatedEnd {
  int status = 0;
  int signal = 0;
};

/// Forks; the child runs `produce` with stdout and stderr closed and ends with the status that it returns; this process
/// runs `consume` meanwhile. Only the calling thread exists in the child: `produce` must not wait for others. If
/// `consume` throws, the child is ended first. Throws ResourceError if no process can be made.
IsolatedEnd run_isolated(const IsolatedLimits& limits, const std::function<int(const IsolatedSender&)>& produce,
                         const std::function<void(const IsolatedReceiver&)>& consume);

}  // namespace spikeloom
