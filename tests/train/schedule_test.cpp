#include "train/schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace spikeloom {
namespace {

OptimizerSpec spec_of(ScheduleKind kind) {
  OptimizerSpec spec;
  spec.learning_rate = 0.5;
  spec.schedule = kind;
  return spec;
}

TEST(Schedule, ConstantIsConstantAfterItsWarmUp) {
  OptimizerSpec spec = spec_of(ScheduleKind::constant);
  EXPECT_EQ(learning_rate_at(spec, 0, 100, 1.0), 0.5);
  spec.warmup_steps = 10;
  spec.warmup_start = 0.2;
  EXPECT_DOUBLE_EQ(learning_rate_at(spec, 0, 100, 1.0), 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_at(spec, 5, 100, 1.0), 0.3);
  EXPECT_EQ(learning_rate_at(spec, 10, 100, 1.0), 0.5);
  EXPECT_EQ(learning_rate_at(spec, 99, 100, 1.0), 0.5);
}

TEST(Schedule, CosineStartsAtThePeakAndEndsAtItsFraction) {
  OptimizerSpec spec = spec_of(ScheduleKind::cosine);
  spec.final_fraction = 0.02;
  EXPECT_DOUBLE_EQ(learning_rate_at(spec, 0, 100, 1.0), 0.5);
  EXPECT_NEAR(learning_rate_at(spec, 50, 100, 1.0), 0.5 * 0.51, 1e-12);
  EXPECT_NEAR(learning_rate_at(spec, 100, 100, 1.0), 0.01, 1e-12);
  for (int step = 1; step < 100; ++step)
    EXPECT_LT(learning_rate_at(spec, step, 100, 1.0), learning_rate_at(spec, step - 1, 100, 1.0));
}

TEST(Schedule, OneCycleIsTorchsOneCycleLR) {
  // torch.optim.lr_scheduler.OneCycleLR(max_lr=0.5, total_steps=10, pct_start=0.3, div_factor=25,
  // final_div_factor=1e4), rounded to 6 places.
  const double torch[] = {0.020000, 0.260000, 0.500000, 0.475242, 0.405873,
                          0.305631, 0.194371, 0.094129, 0.024760, 0.000002};
  OptimizerSpec spec = spec_of(ScheduleKind::one_cycle);
  spec.final_fraction = 4e-6;
  for (int step = 0; step < 10; ++step) EXPECT_NEAR(learning_rate_at(spec, step, 10, 1.0), torch[step], 1e-6) << step;
}

TEST(Schedule, ShortRunsOfEveryKindStayWithinThePeak) {
  for (const ScheduleKind kind :
       {ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::one_cycle, ScheduleKind::plateau}) {
    for (int total = 1; total < 6; ++total) {
      for (int step = 0; step < total; ++step) {
        const double rate = learning_rate_at(spec_of(kind), step, total, 1.0);
        EXPECT_GE(rate, 0.0);
        EXPECT_LE(rate, 0.5);
      }
    }
  }
}

TEST(Schedule, PlateauReducesAfterMoreThanPatienceEpochsWithoutGain) {
  OptimizerSpec spec = spec_of(ScheduleKind::plateau);
  spec.plateau_patience = 2;
  spec.plateau_factor = 0.1;
  PlateauState state;
  const double losses[] = {1.0, 0.9, 0.9, 0.95, 0.90001, 0.91, 0.91, 0.8};
  const double scales[] = {1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.1};
  for (int epoch = 0; epoch < 8; ++epoch) {
    state = after_epoch(spec, state, losses[epoch]);
    EXPECT_DOUBLE_EQ(state.scale, scales[epoch]) << epoch;
  }
  EXPECT_DOUBLE_EQ(learning_rate_at(spec, 3, 10, state.scale), 0.05);
}

NetworkSpec network_with_windows(std::vector<double> lows) {
  NetworkSpec network;
  for (const double low : lows) network.layers.emplace_back().surrogate.window_low = low;
  return network;
}

TEST(Annealing, DistanceToTheTargetHalvesUntilItIsOver) {
  TrainingSpec spec;
  const NetworkSpec network = network_with_windows({0.9});
  EXPECT_DOUBLE_EQ(window_low_at(spec, network, 0), -100.0);
  EXPECT_NEAR(window_low_at(spec, network, 1), 0.9 - 100.9 / 2, 1e-12);
  EXPECT_NEAR(window_low_at(spec, network, 10), 0.9 - 100.9 / 1024, 1e-12);
  EXPECT_TRUE(std::isnan(window_low_at(spec, network, 17)));
  spec.anneal_halving = 2.5;
  EXPECT_NEAR(window_low_at(spec, network, 5), 0.9 - 100.9 / 4, 1e-12);
}

TEST(Annealing, IsOffWhereNothingIsToAnneal) {
  TrainingSpec spec;
  EXPECT_TRUE(std::isnan(window_low_at(spec, network_with_windows({-std::numeric_limits<double>::infinity()}), 0)));
  EXPECT_TRUE(std::isnan(window_low_at(spec, network_with_windows({-200.0}), 0)));
  spec.anneal_window = false;
  EXPECT_TRUE(std::isnan(window_low_at(spec, network_with_windows({0.9}), 0)));
}

TEST(Annealing, LayersWithDifferentWindowsAreNeverNarrowerThanTheirOwn) {
  TrainingSpec spec;
  const NetworkSpec network = network_with_windows({0.9, 0.5});
  for (int batch = 0; batch < 30; ++batch) {
    const double low = window_low_at(spec, network, batch);
    EXPECT_TRUE(std::isnan(low) || low < 0.5);
  }
}

}  // namespace
}  // namespace spikeloom
