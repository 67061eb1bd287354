// The control laws by themselves: on a layer whose rate answers as simply as can be.
#include <gtest/gtest.h>

#include <cmath>

#include "train/activity_control.hpp"

namespace spikeloom {
namespace {

LayerSpec layer_with_target(double target) {
  LayerSpec layer;
  layer.name = "layer";
  layer.size = 10;
  layer.activity_target = target;
  return layer;
}

TEST(RateCost, GrowsWithEffortIsOddAndKeepsItsPriceForAnyTarget) {
  const LayerSpec layer = layer_with_target(0.01);
  EXPECT_EQ(rate_cost_of(layer, 0.0, 0.0), 0.0);
  double last = 0.0;
  for (double effort = 0.5; effort <= 10.0; effort += 0.5) {
    const double cost = rate_cost_of(layer, effort, 0.0);
    EXPECT_GT(cost, last);
    EXPECT_NEAR(rate_cost_of(layer, -effort, 0.0), -cost, 1e-12 * cost);
    EXPECT_NEAR(cost * 0.01, rate_cost_of(layer_with_target(0.2), effort, 0.0) * 0.2, 1e-12 * cost);
    last = cost;
  }
  EXPECT_NEAR(rate_cost_of(layer, 3.0, 0.5) * 0.01, 0.01 * std::sinh(3.5), 1e-12);
}

TEST(Window, ReachesFartherTheLongerTooFewAreActiveAndComesBack) {
  LayerSpec layer = layer_with_target(0.0);
  layer.rescue_active = 0.2;
  layer.surrogate.window_low = 0.9;
  double reach = 1.0;
  EXPECT_EQ(window_low_of(layer, reach, std::nan("")), 0.9);
  double low = 0.9;
  for (int batch = 0; batch < 10; ++batch) {
    reach = next_reach(layer, reach, 0.19);
    EXPECT_LT(window_low_of(layer, reach, std::nan("")), low);
    low = window_low_of(layer, reach, std::nan(""));
  }
  EXPECT_EQ(reach, kLongestReach);
  EXPECT_EQ(next_reach(layer, reach, 0.0), kLongestReach);
  int batches = 0;
  for (; reach > 1.0; ++batches) reach = next_reach(layer, reach, 0.2);
  EXPECT_EQ(window_low_of(layer, reach, std::nan("")), 0.9);
  EXPECT_NEAR(batches, 160, 1);
}

TEST(Window, AnnealingHoldsWhereItReachesFarther) {
  LayerSpec layer = layer_with_target(0.0);
  layer.surrogate.window_low = 0.9;
  EXPECT_EQ(window_low_of(layer, 1.0, -5.0), -5.0);
  EXPECT_EQ(window_low_of(layer, 2.0, -5.0), -5.0);
  EXPECT_NEAR(window_low_of(layer, 20.0, 0.5), -1.0, 1e-12);
  layer.surrogate.window_low = 1.0;  // one that has no width can be widened, too
  EXPECT_LT(window_low_of(layer, 2.0, std::nan("")), 1.0);
}

}  // namespace
}  // namespace spikeloom
