// Every kernel on every instruction set of this CPU against a plain loop.
#include "kernels/kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "core/aligned_buffer.hpp"
#include "core/random.hpp"
#include "network/neuron_constants.hpp"
#include "network/scalar_models.hpp"

namespace spikeloom::kernels {
namespace {

constexpr int kInputs = 150;
constexpr int kSteps = 37;

AlignedBuffer<float> random_floats(std::size_t size, const char* purpose, double scale = 1.0) {
  RandomStream random(3, purpose);
  AlignedBuffer<float> values(size);
  for (float& v : values) v = static_cast<float>(scale * random.normal());
  return values;
}

/// Events of `rows` rows over `neurons` ids; some rows are empty, some full.
struct Events {
  Events(int rows, int neurons, double density) {
    RandomStream random(4, "events");
    for (int row = 0; row < rows; ++row) {
      const double share = row % 9 == 4 ? 0.0 : row % 9 == 7 ? 1.0 : density;
      for (int id = 0; id < neurons; ++id) {
        if (random.uniform() < share) ids.push_back(static_cast<std::uint32_t>(id));
      }
      offsets.push_back(static_cast<std::uint32_t>(ids.size()));
    }
  }
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::uint32_t> ids;
};

/// A tile of neurons with differing constants, the last two columns padding.
struct Tile {
  explicit Tile(int a_width, ResetKind reset)
      : width(a_width),
        weights(random_floats(kInputs * a_width, "weights", 0.2)),
        bias(random_floats(a_width, "bias", 0.05)) {
    spec.reset = reset;
    spec.surrogate.window_low = 0.7;
    spec.surrogate.window_high = 1.6;
    RandomStream random(6, "decay");
    std::vector<float> decays;
    for (int c = 0; c < width; ++c) decays.push_back(static_cast<float>(random.uniform(0.3, 0.99)));
    values = neuron_constants<float>(spec, decays, std::nan(""));
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int c = width - 2; c < width; ++c) {
      values.decay[c] = 0.0f;
      values.threshold[c] = values.window_low[c] = values.window_high[c] = kInfinity;
      bias[c] = 0.0f;
      for (int i = 0; i < kInputs; ++i) weights[i * width + c] = 0.0f;
    }
    const std::vector<float>* from[] = {&values.decay,        &values.gain,          &values.threshold,
                                        &values.spiked_slope, &values.spiked_offset, &values.window_low,
                                        &values.window_high};
    for (int k = 0; k < 7; ++k) {
      columns[k] = AlignedBuffer<float>(width);
      std::copy(from[k]->begin(), from[k]->end(), columns[k].begin());
    }
  }
  TileConstants constants() const {
    return {columns[0].data(), columns[1].data(), columns[2].data(), columns[3].data(),
            columns[4].data(), columns[5].data(), columns[6].data()};
  }
  scalar::Lif::Constants<float> of_column(int c) const {
    return {values.decay[c], values.gain[c], values.threshold[c], values.spiked_slope[c], values.spiked_offset[c]};
  }
  int width;
  LayerSpec spec;
  AlignedBuffer<float> weights, bias;
  NeuronConstants<float> values;
  AlignedBuffer<float> columns[7];
};

struct Trace {
  explicit Trace(int width) : counts(kSteps), codes(kSteps * width), membranes(kSteps * width) {}
  TraceOut out() { return {counts.data(), codes.data(), membranes.data()}; }
  std::vector<std::uint8_t> counts, codes;
  std::vector<float> membranes;
  std::size_t entries = 0;
};

/// The plain loop that forward_spiking must equal to the bit on instruction sets with FMA.
Trace plain_forward(const Tile& tile, const Events& events) {
  Trace trace(tile.width);
  std::vector<float> carry(tile.width, 0.0f);
  for (int step = 0; step < kSteps; ++step) {
    for (int c = 0; c < tile.width; ++c) {
      float sum = tile.bias[c];
      for (std::uint32_t e = events.offsets[step]; e < events.offsets[step + 1]; ++e)
        sum += tile.weights[events.ids[e] * tile.width + c];
      const auto constants = tile.of_column(c);
      const float u = scalar::Lif::integrate(constants, carry[c], sum);
      const bool spiked = scalar::Lif::fires(constants, u);
      const bool active = u > tile.values.window_low[c] && u <= tile.values.window_high[c];
      carry[c] = scalar::Lif::carry(constants, u, spiked);
      if (!spiked && !active) continue;
      ++trace.counts[step];
      trace.codes[trace.entries] = static_cast<std::uint8_t>(c | (spiked ? kSpiked : 0) | (active ? kActive : 0));
      trace.membranes[trace.entries++] = u;
    }
  }
  return trace;
}

std::vector<std::uint32_t> rows_of(const Trace& trace) {
  std::vector<std::uint32_t> rows(trace.entries + 8);
  expand_rows(trace.counts.data(), kSteps, rows.data());
  return rows;
}

class OnEveryTarget : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { limit_to_target(GetParam()); }
  void TearDown() override { limit_to_target(""); }
  bool has_fma() const { return !GetParam().starts_with("SS"); }
  /// Equal bits with FMA; without, to rounding.
  void expect_same(float a, float b, double scale = 1.0) const {
    if (has_fma()) {
      EXPECT_EQ(a, b);
    } else {
      EXPECT_NEAR(a, b, 1e-5 * scale);
    }
  }
};

TEST_P(OnEveryTarget, ForwardSpikingEqualsThePlainLoop) {
  if (!has_fma()) GTEST_SKIP() << "without FMA a membrane at the threshold may fall on the other side";
  for (const int width : {16, 32, 64}) {
    for (const ResetKind reset :
         {ResetKind::zero, ResetKind::subtract, ResetKind::subtract_after_decay, ResetKind::none}) {
      const Tile tile(width, reset);
      const Events events(kSteps, kInputs, 0.1);
      const Trace expected = plain_forward(tile, events);
      Trace trace(width);
      TileInput input{tile.weights.data(), tile.bias.data(), events.offsets.data(), events.ids.data()};
      trace.entries = forward_spiking(width, input, tile.constants(), kSteps, trace.out());
      ASSERT_GT(expected.entries, 20u);
      ASSERT_EQ(trace.entries, expected.entries);
      EXPECT_EQ(trace.counts, expected.counts);
      EXPECT_EQ(trace.codes, expected.codes);
      EXPECT_EQ(trace.membranes, expected.membranes);
    }
  }
}

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

/// `samples` samples step by step, with random currents and own spikes, and the same in a plain loop.
TEST_P(OnEveryTarget, ForwardStepEqualsThePlainLoop) {
  if (!has_fma()) GTEST_SKIP() << "without FMA a membrane at the threshold may fall on the other side";
  constexpr int kSamples = 5;
  for (const int width : {16, 32, 64}) {
    const Tile tile(width, ResetKind::subtract);
    const AlignedBuffer<float> currents = random_floats(kSteps * kSamples * width, "currents", 0.3);
    AlignedBuffer<float> carry(kSamples * width);
    std::vector<float> expected_carry(kSamples * width, 0.0f);
    std::size_t all_entries = 0;
    for (int step = 0; step < kSteps; ++step) {
      RandomStream random(static_cast<std::uint64_t>(step), "own spikes");
      std::vector<std::uint32_t> offsets{0}, ids;
      for (int s = 0; s < kSamples; ++s) {
        for (std::uint32_t id = 0; id < kInputs; ++id) {
          if (random.uniform() < 0.05 * s) ids.push_back(id);
        }
        offsets.push_back(static_cast<std::uint32_t>(ids.size()));
      }
      const float* current = currents.data() + step * kSamples * width;
      std::vector<std::uint8_t> counts(kSamples * 3, 99), codes(kSamples * width);
      std::vector<float> membranes(kSamples * width);
      std::vector<std::uint64_t> spiked(kSamples);
      const std::size_t entries = forward_step(
          width, {tile.bias.data(), current, width, tile.weights.data(), offsets.data(), ids.data()}, tile.constants(),
          kSamples, carry.data(), {counts.data(), 3, codes.data(), membranes.data(), spiked.data()});

      std::size_t entry = 0;
      for (int s = 0; s < kSamples; ++s) {
        std::uint64_t expected_spiked = 0;
        const std::size_t first = entry;
        for (int c = 0; c < width; ++c) {
          float sum = tile.bias[c] + current[s * width + c];
          for (std::uint32_t e = offsets[s]; e < offsets[s + 1]; ++e) sum += tile.weights[ids[e] * width + c];
          const auto constants = tile.of_column(c);
          float& carried = expected_carry[s * width + c];
          const float u = scalar::Lif::integrate(constants, carried, sum);
          const bool fires = scalar::Lif::fires(constants, u);
          const bool active = u > tile.values.window_low[c] && u <= tile.values.window_high[c];
          carried = scalar::Lif::carry(constants, u, fires);
          EXPECT_EQ(carry[s * width + c], carried);
          expected_spiked |= std::uint64_t{fires} << c;
          if (!fires && !active) continue;
          ASSERT_LT(entry, entries);
          EXPECT_EQ(codes[entry], c | (fires ? kSpiked : 0) | (active ? kActive : 0));
          EXPECT_EQ(membranes[entry++], u);
        }
        EXPECT_EQ(spiked[s], expected_spiked);
        EXPECT_EQ(counts[s * 3], entry - first);
      }
      EXPECT_EQ(entry, entries);
      all_entries += entries;
    }
    EXPECT_GT(all_entries, 100u);
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

TEST_P(OnEveryTarget, BackwardSpikingEqualsThePlainLoop) {
  for (const int width : {16, 32, 64}) {
    for (const bool through_reset : {false, true}) {
      const Tile tile(width, ResetKind::subtract);
      const Trace trace = plain_forward(tile, Events(kSteps, kInputs, 0.1));
      const AlignedBuffer<float> h = random_floats(trace.entries, "h"), ds = random_floats(trace.entries, "ds"),
                                 rate = random_floats(width, "rate");
      AlignedBuffer<float> rows(kSteps * width), jumps(kSteps * width), bias(width);
      AlignedBuffer<std::uint64_t> masks(kSteps);
      const std::vector<std::uint32_t> entry_rows = rows_of(trace);
      const TraceIn in{trace.entries, entry_rows.data(), trace.codes.data(), h.data(),
                       through_reset ? trace.membranes.data() : nullptr};
      backward_spiking(width, tile.constants(), in, ds.data(), rate.data(), kSteps, rows.data(), width, bias.data(),
                       masks.data(), jumps.data());

      for (int c = 0; c < width; ++c) {
        // The column's own entries, by step.
        std::vector<float> through(kSteps, 0.0f), jump(kSteps, 0.0f);
        std::vector<bool> spiked(kSteps, false);
        std::size_t entry = 0, active = 0;
        for (int step = 0; step < kSteps; ++step) {
          for (const std::size_t end = entry + trace.counts[step]; entry < end; ++entry) {
            const bool is_active = trace.codes[entry] & kActive;
            const float gradient = is_active ? ds[active++] : 0.0f;
            if ((trace.codes[entry] & kColumnBits) != c) continue;
            spiked[step] = trace.codes[entry] & kSpiked;
            if (!is_active) continue;
            through[step] = h[entry] * (gradient + rate[c]);
            jump[step] = h[entry] * scalar::Lif::reset_jump(tile.of_column(c), trace.membranes[entry]);
          }
        }
        float delta = 0.0f, sum = 0.0f;
        for (int step = kSteps - 1; step >= 0; --step) {
          const auto constants = tile.of_column(c);
          delta = through_reset ? scalar::Lif::adjoint_through_reset(constants, bool(spiked[step]), jump[step],
                                                                     through[step], delta)
                                : scalar::Lif::adjoint(constants, bool(spiked[step]), through[step], delta);
          sum += constants.gain * delta;
          expect_same(rows[step * width + c], constants.gain * delta, 10.0);
        }
        expect_same(bias[c], sum, 100.0);
      }
    }
  }
}

/// Two copies of a sample, taken back step by step, have the deltas that backward_spiking finds in one go.
TEST_P(OnEveryTarget, BackwardStepsAreBackwardSpiking) {
  for (const int width : {16, 32, 64}) {
    for (const bool through_reset : {false, true}) {
      const Tile tile(width, ResetKind::subtract);
      const Trace trace = plain_forward(tile, Events(kSteps, kInputs, 0.1));
      const AlignedBuffer<float> h = random_floats(trace.entries, "h"), ds = random_floats(trace.entries, "ds"),
                                 rate = random_floats(width, "rate");
      AlignedBuffer<float> expected(kSteps * width), jumps(kSteps * width), bias(width);
      AlignedBuffer<std::uint64_t> masks(kSteps);
      const std::vector<std::uint32_t> entry_rows = rows_of(trace);
      const float* membranes = through_reset ? trace.membranes.data() : nullptr;
      backward_spiking(width, tile.constants(),
                       {trace.entries, entry_rows.data(), trace.codes.data(), h.data(), membranes}, ds.data(),
                       rate.data(), kSteps, expected.data(), width, bias.data(), masks.data(), jumps.data());

      AlignedBuffer<float> rows(2 * kSteps * width), delta(2 * width);
      std::size_t first = trace.entries, active = 0;
      for (std::size_t e = 0; e < trace.entries; ++e) active += (trace.codes[e] & kActive) != 0;
      for (int step = kSteps - 1; step >= 0; --step) {
        std::size_t active_here = 0;
        for (int left = trace.counts[step]; left > 0; --left) active_here += (trace.codes[--first] & kActive) != 0;
        active -= active_here;
        std::vector<float> gradient(ds.data() + active, ds.data() + active + active_here);
        gradient.insert(gradient.end(), ds.data() + active, ds.data() + active + active_here);
        const std::size_t firsts[] = {first, first};
        const StepEntries entries{firsts, trace.counts.data() + step, 0, trace.codes.data(), h.data(), membranes};
        backward_step(width, tile.constants(), entries, gradient.data(), rate.data(), 2, delta.data(),
                      rows.data() + step * width, kSteps * width, masks.data(), jumps.data());
      }
      for (int i = 0; i < kSteps * width; ++i) {
        EXPECT_EQ(rows[i], expected[i]);
        EXPECT_EQ(rows[kSteps * width + i], expected[i]);
      }
    }
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
    trace.entries = forward_spiking(width, input, tile.constants(), kSteps, trace.out());
    ASSERT_GT(expected.entries, 20u);
    EXPECT_EQ(trace.counts, expected.counts);
    EXPECT_EQ(trace.codes, expected.codes);
    EXPECT_EQ(trace.membranes, expected.membranes);
  });
}

TEST_P(HalfRows, DeltaIsTheRoundedDelta) {
  for (const int width : {32, 64}) {
    const Tile tile(width, ResetKind::zero);
    const Trace trace = plain_forward(tile, Events(kSteps, kInputs, 0.1));
    const AlignedBuffer<float> h = random_floats(trace.entries, "h"), ds = random_floats(trace.entries, "ds");
    AlignedBuffer<float> rate(width), rows(kSteps * width), scratch(kSteps * width), bias(width), half_bias(width);
    AlignedBuffer<Bf16Pair> half_rows(kSteps * width / 2);
    AlignedBuffer<std::uint64_t> masks(kSteps);
    const std::vector<std::uint32_t> entry_rows = rows_of(trace);
    const TraceIn in{trace.entries, entry_rows.data(), trace.codes.data(), h.data()};
    backward_spiking(width, tile.constants(), in, ds.data(), rate.data(), kSteps, rows.data(), width, bias.data(),
                     masks.data(), nullptr);
    backward_spiking(width, tile.constants(), in, ds.data(), rate.data(), kSteps, scratch.data(), width,
                     half_bias.data(), masks.data(), nullptr, half_rows.data());
    for (int step = 0; step < kSteps; ++step) {
      for (int c = 0; c < width; ++c)
        EXPECT_EQ(unpacked(half_rows.data() + step * width / 2, c), rounded_to_bf16(rows[step * width + c]));
    }
    for (int c = 0; c < width; ++c) EXPECT_EQ(half_bias[c], bias[c]) << "biases are summed in float32";
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

INSTANTIATE_TEST_SUITE_P(Targets, HalfRows, ::testing::ValuesIn(available_targets()),
                         [](const auto& target) { return target.param; });

TEST(Targets, ThereAreSeveralAndTheyCanBeChosen) {
  EXPECT_GE(available_targets().size(), 1u);
  EXPECT_THROW(limit_to_target("no such"), std::logic_error);
}

}  // namespace
}  // namespace spikeloom::kernels
