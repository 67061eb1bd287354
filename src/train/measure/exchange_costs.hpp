// What a step of the step-major schedule of recurrent layers (engine/cohorts.hpp) costs beside its sums.
#pragma once

#include <vector>

namespace spikeloom {

/// The layer and the samples that advance together.
struct ExchangeCase {
  int neurons = 1024;
  int samples = 64;
  double activity = 0.01;
  double active_fraction = 0.02;
};

/// Nanoseconds of a step with this many workers.
struct ExchangeTiming {
  int threads = 0;
  double barrier = 0.0;           // an empty meeting
  double list_spikes = 0.0;       // beyond it: each worker says which of its neurons spiked, and lists those of all
  double gather_gradients = 0.0;  // beyond it: each writes its tiles' parts of dLoss/ds, and adds all parts of its own
};

/// With 1, 2, 4, ... and `most` workers. Results were right before they are returned: else throws InternalError.
std::vector<ExchangeTiming> time_exchange(const ExchangeCase& layer, int most);

}  // namespace spikeloom
