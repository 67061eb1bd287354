// Kernels that read bf16 copies of weights and deltas against plain loops over the rounded numbers, on every
// instruction set of this CPU.
#include <cstring>

#include "kernel_case.hpp"

namespace spikeloom::kernels {
namespace {

/// Round to nearest even by arithmetic on the number rather than its bits; tiny values become 0.
float rounded_to_bf16(float x) {
  if (std::fabs(x) < 1e-30f) return 0.0f;
  int exponent;
  const double mantissa = std::frexp(static_cast<double>(x), &exponent);  // 8 bits of it are kept
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
}

/// Column `column` of the row at `row` of bf16 pairs.
float unpacked(const Bf16Pair* row, int column) {
  const Bf16Pair pair = row[column / 32 * 16 + column % 16];
  const std::uint32_t bits = column % 32 < 16 ? pair << 16 : pair & 0xFFFF0000u;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

AlignedBuffer<Bf16Pair> halves_of(int width, const AlignedBuffer<float>& rows) {
  AlignedBuffer<Bf16Pair> pairs(rows.size() / 2);
  round_rows(width, rows.data(), rows.size() / width, pairs.data());
  return pairs;
}

/// By shifts, and by the dot-product instruction where this CPU has it.
class HalfRows : public OnEveryTarget {
 protected:
  void TearDown() override {
    use_bf16_dot(Bf16Dot::where_it_pays);
    OnEveryTarget::TearDown();
  }
  template <class Check>
  void each_way(const Check& check) {
    for (const Bf16Dot use : {Bf16Dot::never, Bf16Dot::always}) {
      use_bf16_dot(use);
      for (const int width : {32, 64}) check(width);
    }
  }
};

TEST_P(HalfRows, AreRoundedToNearestEven) {
  AlignedBuffer<float> rows = random_floats(100 * 64, "rounded", 3.0);
  const float ties[] = {1.00390625f, 1.01171875f, -1.00390625f, 3e-31f, -3e-31f, 1e-29f, 0.0f, 3e38f, 65280.0f, 1e-7f};
  std::copy(std::begin(ties), std::end(ties), rows.begin());
  for (const int width : {32, 64}) {
    const AlignedBuffer<Bf16Pair> pairs = halves_of(width, rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(unpacked(pairs.data() + i / width * width / 2, static_cast<int>(i % width)), rounded_to_bf16(rows[i]))
          << rows[i];
    }
  }
}

TEST_P(HalfRows, ForwardEqualsThePlainLoopOnRoundedWeights) {
  if (!has_fma()) GTEST_SKIP() << "without FMA a membrane at the threshold may fall on the other side";
  each_way([](int width) {
    Tile tile(width, ResetKind::subtract);
    const AlignedBuffer<Bf16Pair> pairs = halves_of(width, tile.weights);
    for (float& weight : tile.weights) weight = rounded_to_bf16(weight);
    const Events events(kSteps, kInputs, 0.1);
    const Trace expected = plain_forward(tile, events);
    Trace trace(width);
    TileInput input{nullptr, tile.bias.data(), events.offsets.data(), events.ids.data()};
    input.half_weights = pairs.data();
    trace.end(tile.kernels().forward(width, input, tile.constants(), kSteps, trace.out()));
    ASSERT_GT(expected.entries, 20u);
    EXPECT_EQ(trace.counts, expected.counts);
    EXPECT_EQ(trace.codes, expected.codes);
    EXPECT_EQ(trace.membranes, expected.membranes);
  });
}

TEST_P(HalfRows, DeltaIsTheRoundedDelta) {
  for (const NeuronKind neuron : kNeurons) {
    for (const int width : {32, 64}) {
      const Tile tile(width, ResetKind::zero, neuron);
      BackwardCase full(tile, false), half(tile, false), learned(tile, false);
      AlignedBuffer<Bf16Pair> half_rows(kSteps * width / 2), learned_rows(kSteps * width / 2);
      full.run();
      half.run(nullptr, half_rows.data());
      const AlignedBuffer<float> states = random_floats(kSteps * 3 * width, "states");
      AlignedBuffer<float> sums(kNeuronConstants * width);
      const ConstantGradients gradients{states.data(), sums.data()};
      learned.run(&gradients, learned_rows.data());
      for (int step = 0; step < kSteps; ++step) {
        for (int c = 0; c < width; ++c) {
          const float expected = rounded_to_bf16(full.rows[step * width + c]);
          EXPECT_EQ(unpacked(half_rows.data() + step * width / 2, c), expected);
          EXPECT_EQ(unpacked(learned_rows.data() + step * width / 2, c), expected);
        }
      }
      for (int c = 0; c < width; ++c) EXPECT_EQ(half.bias[c], full.bias[c]) << "biases are summed in float32";
    }
  }
}

TEST_P(HalfRows, WeightGradientEqualsThePlainLoop) {
  const Events by_id(kInputs, 300, 0.05);
  each_way([&](int width) {
    const AlignedBuffer<Bf16Pair> rows = halves_of(width, random_floats(300 * width, "rows"));
    for (const Gradient state : {Gradient::add, Gradient::start}) {
      AlignedBuffer<float> gradient = random_floats(kInputs * width, "gradient");
      AlignedBuffer<float> expected = gradient;
      weight_gradient(width, by_id.offsets.data(), by_id.ids.data(), 3, kInputs, rows.data(), state, gradient.data());
      if (state == Gradient::start) std::fill(expected.begin() + 3 * width, expected.end(), 0.0f);
      for (int id = 3; id < kInputs; ++id) {
        for (std::uint32_t e = by_id.offsets[id]; e < by_id.offsets[id + 1]; ++e) {
          for (int c = 0; c < width; ++c)
            expected[id * width + c] += unpacked(rows.data() + by_id.ids[e] * width / 2, c);
        }
      }
      EXPECT_EQ(std::memcmp(gradient.data(), expected.data(), gradient.size() * sizeof(float)), 0);
    }
  });
}

TEST_P(HalfRows, InputGradientIsTheDotProductInTheFixedTree) {
  const Events events(40, kInputs, 0.04);
  each_way([&](int width) {
    const AlignedBuffer<Bf16Pair> weights = halves_of(width, random_floats(kInputs * width, "weights")),
                                  rows = halves_of(width, random_floats(40 * width, "rows"));
    std::vector<float> out(events.ids.size(), -1.0f);
    input_gradient(width, weights.data(), rows.data(), 40, events.offsets.data(), events.ids.data(), out.data());
    for (int row = 0; row < 40; ++row) {
      for (std::uint32_t e = events.offsets[row]; e < events.offsets[row + 1]; ++e) {
        const Bf16Pair* w = weights.data() + events.ids[e] * width / 2;
        const Bf16Pair* d = rows.data() + row * width / 2;
        float lane[16] = {};
        for (int l = 0; l < 16; ++l) {
          for (int block = 0; block < width; block += 32) {
            for (const int c : {block + l + 16, block + l}) lane[l] = std::fma(unpacked(w, c), unpacked(d, c), lane[l]);
          }
        }
        for (int half = 8; half > 0; half /= 2) {
          for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
        }
        expect_same(out[e], lane[0], 20.0);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Targets, HalfRows, ::testing::ValuesIn(available_targets()),
                         [](const auto& target) { return target.param; });

}  // namespace
}  // namespace spikeloom::kernels
