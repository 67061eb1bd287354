// What is timed of a recurrent step is checked before it is timed: here, that it is with any number of workers.
#include "train/measure/exchange_costs.hpp"

#include <gtest/gtest.h>

namespace spikeloom {
namespace {

TEST(ExchangeTiming, IsThatOfRightResultsForOneToAllWorkers) {
  // Two tiles: of three workers one has none, and meets the others all the same.
  const ExchangeCase small{.neurons = 100, .samples = 5, .activity = 0.05, .active_fraction = 0.1};
  const std::vector<ExchangeTiming> timings = time_exchange(small, 3);
  ASSERT_EQ(timings.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(timings[i].threads, i + 1);
    EXPECT_GT(timings[i].barrier, 0.0);
  }
  EXPECT_GT(timings[0].list_spikes, 0.0);
  EXPECT_GT(timings[0].gather_gradients, 0.0);
  EXPECT_EQ(time_exchange(small, 1).size(), 1u);
}

}  // namespace
}  // namespace spikeloom
