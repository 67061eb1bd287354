// Recordings in chunks: what neurons hand on goes from chunk to chunk, gradients do not.
#include <cstring>

#include "gradient_check.hpp"
#include "random_networks.hpp"

namespace spikeloom::testing {
namespace {

/// Hands the outputs over to the configured loss and keeps them.
class Recorder final : public ReadoutLoss {
 public:
  explicit Recorder(const Case& test)
      : loss_(make_readout_loss(test.loss, test.network)), outputs_(test.batch.samples) {}

  SampleResult evaluate_membrane(const float* output, float* gradient, int steps, int classes, int stride, int label,
                                 double scale) const override {
    std::vector<float> seen;
    for (int step = 0; step < steps; ++step)
      seen.insert(seen.end(), output + step * stride, output + step * stride + classes);
    keep(std::move(seen));
    return loss_->evaluate_membrane(output, gradient, steps, classes, stride, label, scale);
  }
  SampleResult evaluate_counts(const std::uint32_t* counts, float* gradient, int steps, int classes, int label,
                               double scale) const override {
    keep({counts, counts + classes});
    return loss_->evaluate_counts(counts, gradient, steps, classes, label, scale);
  }

  /// Of all samples, in an order of their own.
  std::vector<std::vector<float>> outputs() const {
    std::vector<std::vector<float>> sorted = outputs_;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

 private:
  void keep(std::vector<float> output) const {
    const std::lock_guard lock(mutex_);
    outputs_.at(next_++) = std::move(output);
  }

  std::unique_ptr<ReadoutLoss> loss_;
  mutable std::mutex mutex_;
  mutable std::size_t next_ = 0;
  mutable std::vector<std::vector<float>> outputs_;
};

/// What a forward pass shows, in training or not.
struct Shown {
  std::vector<std::vector<float>> outputs;
  BatchResult result;
  std::vector<LayerCounts> counts;  // of every spiking layer
};

Shown shown(const Case& test, EngineMode mode, int workers, int bptt_steps, bool train) {
  WorkerTeam team(workers, false);
  Engine engine(test.network, busy_plan(test.network, mode, workers, EnginePrecision::fp32, bptt_steps), team);
  set_up(engine, test);
  const Recorder recorder(test);
  Parameters gradient;
  BatchResult result = train ? engine.gradient(test.batch, recorder, gradient) : engine.evaluate(test.batch, recorder);
  std::vector<LayerCounts> counts;
  for (int l = 0; l < static_cast<int>(test.network.layers.size()); ++l) {
    if (test.network.layers[l].spiking()) counts.push_back(engine.count(test.batch, l));
  }
  return {recorder.outputs(), std::move(result), std::move(counts)};
}

void expect_same(const Shown& chunks, const Shown& whole) {
  ASSERT_EQ(chunks.outputs.size(), whole.outputs.size());
  for (std::size_t s = 0; s < whole.outputs.size(); ++s) {
    const std::size_t bytes = whole.outputs[s].size() * sizeof(float);
    ASSERT_EQ(std::memcmp(chunks.outputs[s].data(), whole.outputs[s].data(), bytes), 0);
  }
  for (std::size_t l = 0; l < whole.counts.size(); ++l) {
    EXPECT_EQ(chunks.counts[l].received, whole.counts[l].received);
    EXPECT_EQ(chunks.counts[l].activity, whole.counts[l].activity);
  }
  EXPECT_EQ(chunks.result.losses, whole.result.losses);
  EXPECT_EQ(chunks.result.decisions, whole.result.decisions);
  EXPECT_EQ(chunks.result.regulariser, whole.result.regulariser);
  for (std::size_t l = 0; l < whole.result.layers.size(); ++l) {
    const LayerStatistics &a = chunks.result.layers[l], &b = whole.result.layers[l];
    EXPECT_EQ(a.spike_counts, b.spike_counts);
    EXPECT_EQ(a.were_active, b.were_active);
    EXPECT_EQ(a.spikes, b.spikes);
    EXPECT_EQ(a.active, b.active);
    EXPECT_EQ(a.activity, b.activity);
    EXPECT_EQ(a.active_fraction, b.active_fraction);
    EXPECT_EQ(a.synaptic_operations, b.synaptic_operations);
    EXPECT_EQ(a.budget.spikes, b.budget.spikes);
    EXPECT_EQ(a.budget.dropped_spikes, b.budget.dropped_spikes);
  }
}

/// Every kind of case in turn.
Case case_of(std::uint64_t number) {
  Case test = number % 3 == 0   ? random_case(number, true)
              : number % 3 == 1 ? changed_lists_case(number)
                                : skip_case(number);
  for (LayerSpec& layer : test.network.layers) {
    if (layer.spiking() && layer.surrogate.kind == SurrogateKind::superspike) layer.rescue_active = 0.5;
  }
  return test;
}

/// A chunk that is shorter than the recording, which must have two steps.
int chunk_of(const Case& test, std::uint64_t number) {
  RandomStream random(number, "chunk");
  return std::min(test.batch.steps - 1, pick(random, {1, 2, 3, 7, 16, 50, test.batch.steps / 2 + 1}));
}

class Truncation : public ::testing::TestWithParam<EngineMode> {};

INSTANTIATE_TEST_SUITE_P(Modes, Truncation,
                         ::testing::Values(EngineMode::sparse, EngineMode::dense, EngineMode::automatic),
                         [](const auto& mode) {
                           return mode.param == EngineMode::sparse  ? "sparse"
                                  : mode.param == EngineMode::dense ? "dense"
                                                                    : "auto";
                         });

TEST_P(Truncation, ChangesNoBitOfTheForwardPass) {
  int compared = 0;
  for (std::uint64_t number = 3000; number < 3150; ++number) {
    const Case test = case_of(number);
    if (test.batch.steps < 2) continue;
    const int workers = 1 + static_cast<int>(number / 3 % 3);
    SCOPED_TRACE("case " + std::to_string(number) + ", chunks of " + std::to_string(chunk_of(test, number)));
    for (const bool train : {false, true}) {
      const Shown whole = shown(test, GetParam(), workers, 0, train);
      const Shown chunks = shown(test, GetParam(), workers, chunk_of(test, number), train);
      expect_same(chunks, whole);
    }
    if (HasFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST_P(Truncation, GradientEqualsThatOfTheTruncatedDenseFloat64Reference) {
  Totals totals;
  for (std::uint64_t number = 4000; number < 4150; ++number) {
    const Case test = case_of(number);
    if (test.batch.steps < 2) continue;
    const int chunk = chunk_of(test, number);
    SCOPED_TRACE("case " + std::to_string(number) + ", chunks of " + std::to_string(chunk));
    check_gradient(test, GetParam(), 1 + static_cast<int>(number / 3 % 3), totals, EnginePrecision::fp32, chunk);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(static_cast<double>(totals.differing), 1e-4 * static_cast<double>(totals.decisions));
  EXPECT_GT(totals.decisions, 500'000u);
}

Parameters gradient_of(const Case& test, const Plan& plan) {
  WorkerTeam team(plan.workers, false);
  Engine engine(test.network, plan, team);
  set_up(engine, test);
  Parameters gradient;
  engine.gradient(test.batch, *make_readout_loss(test.loss, test.network), gradient);
  return gradient;
}

double distance(const Parameters& a, const Parameters& b) {
  double sum = 0.0;
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    const std::vector<float>&of_a = a.layers[l].weight, &of_b = b.layers[l].weight;
    for (std::size_t i = 0; i < of_a.size(); ++i) sum += std::fabs(static_cast<double>(of_a[i] - of_b[i]));
  }
  return sum;
}

TEST_P(Truncation, ToNoLessThanTheRecordingChangesNoBit) {
  for (std::uint64_t number = 5000; number < 5012; ++number) {
    const Case test = case_of(number);
    const Plan whole = busy_plan(test.network, GetParam(), 2);
    for (const int chunk : {test.batch.steps, test.batch.steps + 1}) {
      Plan plan = whole;
      plan.bptt_steps = chunk;
      EXPECT_EQ(distance(gradient_of(test, plan), gradient_of(test, whole)), 0.0) << number;
    }
  }
}

TEST_P(Truncation, ChangesTheGradient) {
  int changed = 0, compared = 0;
  for (std::uint64_t number = 5000; number < 5030; ++number) {
    const Case test = case_of(number);
    if (test.batch.steps < 5) continue;
    const Plan whole = busy_plan(test.network, GetParam(), 2);
    Plan plan = whole;
    plan.bptt_steps = 2;
    const Parameters truncated = gradient_of(test, plan), exact = gradient_of(test, whole);
    changed += distance(truncated, exact) > 0.0;
    ++compared;
  }
  EXPECT_GT(changed, compared / 2);
}

}  // namespace
}  // namespace spikeloom::testing
