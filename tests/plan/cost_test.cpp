// What the cost model must say whatever the machine's figures are.
#include "plan/cost.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "made_up_machine.hpp"

namespace spikeloom::testing {
namespace {

double total(const NetworkSpec& network, int workers, const Workload& work, EngineMode mode = EngineMode::sparse) {
  return predict(network, make_plan(network, mode, workers), work, made_up_machine(workers), made_up_figures(workers))
      .total_ns();
}

TEST(Cost, GrowsWithActivityBatchStepsAndSize) {
  const NetworkSpec network = layered(2312, {1471, 1471}, 100);
  const double base = total(network, 1, workload(network, 48, 0.02, 0.01));
  EXPECT_GT(total(network, 1, workload(network, 48, 0.02, 0.02)), base);
  EXPECT_GT(total(network, 1, workload(network, 48, 0.04, 0.01)), base);
  EXPECT_GT(total(network, 1, workload(network, 96, 0.02, 0.01)), 1.5 * base);
  const NetworkSpec longer = layered(2312, {1471, 1471}, 200), wider = layered(2312, {2942, 2942}, 100);
  EXPECT_GT(total(longer, 1, workload(longer, 48, 0.02, 0.01)), 1.5 * base);
  EXPECT_GT(total(wider, 1, workload(wider, 48, 0.02, 0.01)), 1.5 * base);
}

TEST(Cost, PhasesAddUp) {
  const NetworkSpec network = layered(700, {512, 128}, 100);
  const Plan plan = make_plan(network, EngineMode::sparse, 2);
  const Prediction p =
      predict(network, plan, workload(network, 32, 0.02, 0.02), made_up_machine(2), made_up_figures(2));
  double layers = 0.0;
  for (const LayerCost& layer : p.layers) layers += layer.forward_phase() + layer.backward_phase() + layer.update;
  EXPECT_NEAR(layers, p.forward_ns + p.backward_ns + p.update_ns, 1e-6 * layers);
  EXPECT_GT(p.data_ns, 0.0);
}

TEST(Cost, OfTheForwardPassIsWhatOneWorksOutByHand) {
  // 256 inputs of which 10 spike: 64 KB of weights, all in L2.
  const NetworkSpec network = layered(256, {64}, 100);
  Workload work = workload(network, 1, 10.0 / 256.0, 0.0);
  const LayerCost cost =
      sparse_cost(network, make_plan(network, EngineMode::sparse, 1), 0, work, made_up_machine(1), made_up_figures(1));
  EXPECT_NEAR(cost.forward, 100 * (10.0 + 10 * 2.5) + 1000.0, 1e-6);
  EXPECT_EQ(cost.input_gradient, 0.0) << "nobody wants the gradient of the data";
}

TEST(Cost, MoreWorkersAreFasterAndNeverBetterThanTheirNumber) {
  const NetworkSpec network = layered(2312, {1471, 1471}, 100);
  const Workload work = workload(network, 48, 0.02, 0.02);
  const double one = total(network, 1, work);
  for (const int workers : {2, 4, 8}) {
    SCOPED_TRACE(workers);
    EXPECT_LT(total(network, workers, work), one / (0.6 * workers));
    EXPECT_GE(total(network, workers, work), one / workers);
  }
}

TEST(Cost, UnevenTilesAreShared) {
  const NetworkSpec three = layered(256, {192}, 100), four = layered(256, {256}, 100);
  const auto forward = [](const NetworkSpec& network) {
    return sparse_cost(network, make_plan(network, EngineMode::sparse, 2), 0, workload(network, 8, 0.1, 0.02),
                       made_up_machine(2), made_up_figures(2))
        .forward;
  };
  const double barrier = made_up_figures(2).barrier_ns;
  EXPECT_NEAR(forward(three) - barrier, 0.75 * (forward(four) - barrier), 1e-6 * forward(four));
}

TEST(Cost, UnevenTilesOfARecurrentLayerCostTheBusiestWorkersShare) {
  const NetworkSpec network = layered(256, {192}, 100);
  Plan whole = make_plan(network, EngineMode::sparse, 2), split = whole;
  whole.layers[0].shares = share_tiles(3, 2, false);
  const auto forward = [&](const Plan& plan) {
    return sparse_cost(network, plan, 0, workload(network, 8, 0.1, 0.02), made_up_machine(2), made_up_figures(2))
               .forward -
           made_up_figures(2).barrier_ns;
  };
  EXPECT_NEAR(forward(whole), 2.0 / 1.5 * forward(split), 1e-6 * forward(split));  // two tiles for one of the two
}

TEST(Cost, DenseDoesNotDependOnTheInputsActivityMuchAndListsDo) {
  const NetworkSpec network = layered(1024, {1024}, 100);
  const Plan plan = make_plan(network, EngineMode::sparse, 1);
  const auto cost = [&](auto of, double activity) {
    const LayerCost c =
        of(network, plan, 0, workload(network, 48, activity, 0.02), made_up_machine(1), made_up_figures(1));
    return c.forward_phase() + c.backward_phase();
  };
  EXPECT_LT(cost(dense_cost, 0.5), 1.2 * cost(dense_cost, 0.01));
  EXPECT_GT(cost(sparse_cost, 0.5), 10.0 * cost(sparse_cost, 0.01));
}

TEST(Cost, TurnsDenseWhereTheTwoCostTheSame) {
  const NetworkSpec network = layered(1024, {1024, 1024}, 100);
  const Plan plan = make_plan(network, EngineMode::sparse, 1);
  const Machine machine = made_up_machine(1);
  const MachineFigures figures = made_up_figures(1);
  Workload work = workload(network, 48, 0.02, 0.02);
  const double turn = dense_from_activity(network, plan, 0, work, machine, figures);
  ASSERT_GT(turn, 0.02);
  ASSERT_LT(turn, 1.0);
  work.input_activity = turn;
  const LayerCost sparse = sparse_cost(network, plan, 0, work, machine, figures);
  const LayerCost dense = dense_cost(network, plan, 0, work, machine, figures);
  EXPECT_NEAR(sparse.forward_phase() + sparse.backward_phase(), dense.forward_phase() + dense.backward_phase(),
              1e-6 * dense.forward_phase());
  EXPECT_EQ(dense_from_activity(network, plan, 2, work, machine, figures), 1.0) << "a readout is never dense";
}

TEST(Cost, LimitIsTheFormulaOfTheDocumentation) {
  const NetworkSpec network = layered(1000, {64}, 100);
  const MachineFigures f = made_up_figures(1);
  const Workload work = workload(network, 10, 0.02, 0.02);
  // Hidden layer: two passes, 20 events, no gradient of the data. Readout of 16 columns: 1.28 spikes, 2.56 active.
  const double rows = 1000.0;
  const double adds = rows * (2 * 20 * 256.0 + (2 * 1.28 + 2.56) * 64.0) / 100.0;
  const double steps = (2 + 3) * rows * kLimitCyclesPerStep / 3.0;
  const double update = (1000 * 64 + 64 * 16) * 0.5;
  EXPECT_NEAR(rough_limit_ns(network, make_plan(network, EngineMode::sparse, 1), work, f), adds + steps + update, 1.0);
}

TEST(Cost, LimitOfARecurrentLayerCountsItsOwnSpikesAsASecondInput) {
  NetworkSpec network = layered(1000, {64}, 100);
  const MachineFigures f = made_up_figures(1);
  const Workload work = workload(network, 10, 0.02, 0.02);
  const auto limit = [&] { return rough_limit_ns(network, make_plan(network, EngineMode::sparse, 1), work, f); };
  const double without = limit();
  network.layers[0].recurrent = true;
  // 1.28 spikes and 2.56 active of 64; a third pass, and 64 x 64 weights more.
  const double rows = 1000.0;
  const double own = rows * (2 * 1.28 + 2.56) * 256.0 / 100.0 + rows * kLimitCyclesPerStep / 3.0 + 64 * 64 * 0.5;
  EXPECT_NEAR(limit() - without, own, 1.0);
}

}  // namespace
}  // namespace spikeloom::testing
