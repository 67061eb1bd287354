// Encodes many recordings on several threads and hands the results over in order.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

class InnerEar;

struct EncodedRecording {
  std::vector<Event> events;
  int label = 0;
  int speaker = 0;
};

/// Calls `encode(item, ear)` for every item of [0, count) on `threads` threads (0: all cores), each with an ear of its
/// own, and `take(item, result)` on the calling thread in ascending order of items, whatever the number of threads. The
/// first exception of either ends the work.
void encode_in_order(std::size_t count, int threads,
                     const std::function<EncodedRecording(std::size_t item, InnerEar& ear)>& encode,
                     const std::function<void(std::size_t item, const EncodedRecording& result)>& take);

}  // namespace spikeloom
