// Row-adds, dot products, lists and surrogates against plain loops, on every instruction set of this CPU.
#include <cstring>
#include <set>

#include "kernel_case.hpp"

namespace spikeloom::kernels {
namespace {

/// A spike that counts 2 is a row of weights twice as large, to the bit where the bias is 0.
TEST_P(OnEveryTarget, AValueOfSpikesIsAFactorOfTheWeights) {
  const float value = 2.0f;
  for (const int width : {16, 32, 64}) {
    for (const bool bias : {false, true}) {
      Tile tile(width, ResetKind::zero);
      if (!bias) tile.bias.fill(0.0f);
      AlignedBuffer<float> doubled(tile.weights.size());
      for (std::size_t i = 0; i < doubled.size(); ++i) doubled[i] = value * tile.weights[i];
      const Events events(kSteps, kInputs, 0.1);
      const auto membranes = [&](const float* weights, float counts) {
        TileInput input{weights, tile.bias.data(), events.offsets.data(), events.ids.data()};
        input.spike_value = counts;
        std::vector<float> rows(kSteps * width);
        forward_membrane(width, input, tile.constants(), kSteps, rows.data(), width);
        return rows;
      };
      const std::vector<float> by_value = membranes(tile.weights.data(), value);
      const std::vector<float> by_weights = membranes(doubled.data(), 1.0f);
      for (std::size_t i = 0; i < by_value.size(); ++i) {
        if (bias) {
          EXPECT_NEAR(by_value[i], by_weights[i], 1e-4);
        } else {
          expect_same(by_value[i], by_weights[i]);
        }
      }
    }
  }
}

TEST_P(OnEveryTarget, RowsAreExpandedFromCounts) {
  const std::vector<std::uint8_t> counts{0, 3, 0, 0, 8, 9, 64, 1, 0, 17, 0};
  std::vector<std::uint32_t> expected;
  for (std::size_t step = 0; step < counts.size(); ++step)
    expected.insert(expected.end(), counts[step], static_cast<std::uint32_t>(step));
  std::vector<std::uint32_t> rows(expected.size() + 8);
  expand_rows(counts.data(), static_cast<int>(counts.size()), rows.data());
  rows.resize(expected.size());
  EXPECT_EQ(rows, expected);
}

TEST_P(OnEveryTarget, MergedListsHoldTheFlaggedEntriesOfAllTilesStepByStep) {
  RandomStream random(11, "merged lists");
  for (const int width : {16, 32, 64}) {
    std::vector<std::vector<std::uint8_t>> counts(3), codes(3);
    std::vector<std::uint32_t> expected, starts;
    for (int step = 0; step < kSteps; ++step) {
      starts.push_back(static_cast<std::uint32_t>(expected.size()));
      for (int tile = 0; tile < 3; ++tile) {
        const double density = step % 5 == 2 ? 1.0 : step % 5 == 3 ? 0.0 : 0.1;
        std::uint8_t count = 0;
        for (int c = 0; c < width; ++c) {
          if (random.uniform() >= density) continue;
          ++count;
          const bool spiked = random.uniform() < 0.5, active = random.uniform() < 0.7;
          codes[tile].push_back(static_cast<std::uint8_t>(c | (spiked ? kSpiked : 0) | (active ? kActive : 0)));
          if (active) expected.push_back(static_cast<std::uint32_t>(tile * width + c));
        }
        counts[tile].push_back(count);
      }
    }
    std::vector<TileList> lists;
    for (int tile = 0; tile < 3; ++tile) {
      codes[tile].resize(codes[tile].size() + kCodePadding, kActive | kSpiked);
      lists.push_back({counts[tile].data(), codes[tile].data()});
    }
    // Five ids before and twenty behind belong to others.
    std::vector<std::uint32_t> ids(expected.size() + 25, 7777), offsets(kSteps);
    merge_lists(lists, width, kActive, kSteps, 5, static_cast<std::uint32_t>(expected.size() + 5), offsets.data(),
                ids.data());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool ours = i >= 5 && i < expected.size() + 5;
      ASSERT_EQ(ids[i], ours ? expected[i - 5] : 7777u) << "place " << i;
    }
    for (int step = 0; step < kSteps; ++step) EXPECT_EQ(offsets[step], starts[step] + 5);
  }
}

TEST_P(OnEveryTarget, WeightGradientEqualsThePlainLoop) {
  const Events by_id(kInputs, 300, 0.05);  // "rows" of by_id are the inputs, its ids the event rows
  for (const int width : {16, 32, 64}) {
    const AlignedBuffer<float> rows = random_floats(300 * width, "rows");
    AlignedBuffer<float> gradient = random_floats(kInputs * width, "gradient");
    AlignedBuffer<float> expected = gradient;
    weight_gradient(width, by_id.offsets.data(), by_id.ids.data(), 3, kInputs, rows.data(), width, Gradient::add,
                    gradient.data());
    for (int id = 3; id < kInputs; ++id) {
      for (std::uint32_t e = by_id.offsets[id]; e < by_id.offsets[id + 1]; ++e) {
        for (int c = 0; c < width; ++c) expected[id * width + c] += rows[by_id.ids[e] * width + c];
      }
    }
    EXPECT_EQ(std::memcmp(gradient.data(), expected.data(), gradient.size() * sizeof(float)), 0);
  }
}

TEST_P(OnEveryTarget, InputGradientIsTheDotProductInTheFixedTree) {
  const Events events(40, kInputs, 0.04);
  for (const int width : {16, 32, 64}) {
    const AlignedBuffer<float> weights = random_floats(kInputs * width, "weights"),
                               rows = random_floats(40 * width, "rows");
    std::vector<float> out(events.ids.size(), -1.0f);
    input_gradient(width, weights.data(), rows.data(), width, 40, events.offsets.data(), events.ids.data(), out.data());
    for (int row = 0; row < 40; ++row) {
      for (std::uint32_t e = events.offsets[row]; e < events.offsets[row + 1]; ++e) {
        float lane[16];
        for (int l = 0; l < 16; ++l) {
          const float* w = weights.data() + events.ids[e] * width;
          lane[l] = w[l] * rows[row * width + l];
          for (int c = l + 16; c < width; c += 16) lane[l] = std::fma(w[c], rows[row * width + c], lane[l]);
        }
        for (int half = 8; half > 0; half /= 2) {
          for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
        }
        expect_same(out[e], lane[0], 20.0);
      }
    }
  }
}

TEST_P(OnEveryTarget, SurrogatesEqualTheScalarFormulas) {
  const AlignedBuffer<float> membranes = random_floats(101, "membranes", 2.0);
  std::set<float> different;
  for (const SurrogateKind kind : {SurrogateKind::superspike, SurrogateKind::triangle, SurrogateKind::box,
                                   SurrogateKind::quadratic, SurrogateKind::arctan}) {
    SurrogateSpec spec;
    spec.kind = kind;
    spec.beta = 2.5;
    const SurrogateNumbers numbers = surrogate_numbers(spec);
    const scalar::SurrogateConstants<float> c{static_cast<float>(numbers.slope), static_cast<float>(numbers.amplitude),
                                              1.0f};
    std::vector<float> out(membranes.size());
    surrogate_derivatives(spec, 0.8f, membranes.data(), membranes.size(), out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const float x = membranes[i] - 0.8f;
      const float expected = kind == SurrogateKind::superspike  ? scalar::SuperSpike::derivative(c, x)
                             : kind == SurrogateKind::triangle  ? scalar::Triangle::derivative(c, x)
                             : kind == SurrogateKind::box       ? scalar::Box::derivative(c, x)
                             : kind == SurrogateKind::quadratic ? scalar::Quadratic::derivative(c, x)
                                                                : scalar::Arctan::derivative(c, x);
      expect_same(out[i], expected);
      different.insert(out[i]);
    }
  }
  EXPECT_GT(different.size(), 200u);
}

TEST_P(OnEveryTarget, SurrogatesStayFiniteFarFromTheThreshold) {
  const float far[] = {1e4f, -1e4f, 1e20f, -1e20f};
  for (const SurrogateKind kind : {SurrogateKind::superspike, SurrogateKind::arctan, SurrogateKind::triangle}) {
    SurrogateSpec spec;
    spec.kind = kind;
    float out[4];
    surrogate_derivatives(spec, 1.0f, far, 4, out);
    for (const float h : out) EXPECT_TRUE(std::isfinite(h) && h >= 0.0f && h < 1e-3f) << h;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, OnEveryTarget, ::testing::ValuesIn(available_targets()),
                         [](const auto& target) { return target.param; });

TEST(Targets, ThereAreSeveralAndTheyCanBeChosen) {
  EXPECT_GE(available_targets().size(), 1u);
  EXPECT_THROW(limit_to_target("no such"), std::logic_error);
}

}  // namespace
}  // namespace spikeloom::kernels
