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
  explicit Tile(int a_width, ResetKind reset, NeuronKind neuron = NeuronKind::lif)
      : width(a_width),
        weights(random_floats(kInputs * a_width, "weights", 0.2)),
        bias(random_floats(a_width, "bias", 0.05)) {
    spec.neuron = neuron;
    spec.size = width - 2;
    spec.reset = reset;
    spec.adapt_gain = 2.0;  // at its default states grow beyond what float32 holds, with constants drawn like these
    spec.surrogate.window_low = 0.7;
    spec.surrogate.window_high = 1.6;
    RandomStream random(6, "constants");
    LayerParameters parameters;
    for (int c = 0; c < width - 2; ++c) {
      for (std::vector<float>* decays : {&parameters.decay, &parameters.decay_syn, &parameters.decay_adapt})
        decays->push_back(static_cast<float>(random.uniform(0.3, 0.99)));
      parameters.threshold.push_back(static_cast<float>(random.uniform(0.8, 1.2)));
      parameters.adapt_membrane.push_back(static_cast<float>(random.uniform(0.0, 0.5)));
      parameters.adapt_spike.push_back(static_cast<float>(random.uniform(0.0, 1.0)));
    }
    values = neuron_constants<float>(spec, parameters, std::nan(""));
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int k = 0; k < kNeuronConstants; ++k) values.columns[k].resize(width, 0.0f);
    for (int c = width - 2; c < width; ++c) {
      using enum NeuronConstant;
      values[threshold][c] = values[window_low][c] = values[window_high][c] = kInfinity;
      bias[c] = 0.0f;
      for (int i = 0; i < kInputs; ++i) weights[i * width + c] = 0.0f;
    }
    for (int k = 0; k < kNeuronConstants; ++k) {
      columns[k] = AlignedBuffer<float>(width);
      std::copy(values.columns[k].begin(), values.columns[k].end(), columns[k].begin());
    }
  }
  TileConstants constants() const {
    TileConstants constants;
    for (int k = 0; k < kNeuronConstants; ++k) constants.columns[k] = columns[k].data();
    return constants;
  }
  const SpikingKernels& kernels() const { return spiking_kernels(spec.neuron); }
  template <class Model>
  auto of_column(int c) const {
    return scalar::constants_of<Model, float>(values, static_cast<std::size_t>(c));
  }
  bool active(int c, float v) const {
    return v > values[NeuronConstant::window_low][c] && v <= values[NeuronConstant::window_high][c];
  }
  int width;
  LayerSpec spec;
  AlignedBuffer<float> weights, bias;
  NeuronConstants<float> values;
  AlignedBuffer<float> columns[kNeuronConstants];
};

constexpr NeuronKind kNeurons[] = {NeuronKind::lif, NeuronKind::cuba_lif, NeuronKind::alif, NeuronKind::adlif,
                                   NeuronKind::se_adlif};

struct Trace {
  explicit Trace(int width) : counts(kSteps), codes(kSteps * width), membranes(kSteps * width) {}
  TraceOut out() { return {counts.data(), codes.data(), membranes.data()}; }
  std::vector<std::uint8_t> counts, codes;
  std::vector<float> membranes;
  std::size_t entries = 0;
};

/// What neurons hand on, one after the other: room for any model.
using States = std::array<float, 2>;

/// One step of column c in a plain loop: potential and spike.
std::pair<float, bool> plain_step(const Tile& tile, int c, float input, States& handed_on) {
  return scalar::with_model(tile.spec.neuron, [&]<class Model>(Model) {
    const auto constants = tile.of_column<Model>(c);
    float state[Model::kStates];
    std::copy_n(handed_on.begin(), Model::kStates, state);
    const float v = Model::integrate(constants, input, state);
    const bool spiked = v > constants.threshold;
    Model::carry(constants, spiked, state);
    std::copy_n(state, Model::kStates, handed_on.begin());
    return std::pair(v, spiked);
  });
}

/// The plain loop that the forward kernel must equal to the bit on instruction sets with FMA.
Trace plain_forward(const Tile& tile, const Events& events) {
  Trace trace(tile.width);
  std::vector<States> handed_on(tile.width, States{});
  for (int step = 0; step < kSteps; ++step) {
    for (int c = 0; c < tile.width; ++c) {
      float sum = tile.bias[c];
      for (std::uint32_t e = events.offsets[step]; e < events.offsets[step + 1]; ++e)
        sum += tile.weights[events.ids[e] * tile.width + c];
      const auto [v, spiked] = plain_step(tile, c, sum, handed_on[c]);
      const bool active = tile.active(c, v);
      if (!spiked && !active) continue;
      ++trace.counts[step];
      trace.codes[trace.entries] = static_cast<std::uint8_t>(c | (spiked ? kSpiked : 0) | (active ? kActive : 0));
      trace.membranes[trace.entries++] = v;
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

TEST_P(OnEveryTarget, ForwardEqualsThePlainLoop) {
  if (!has_fma()) GTEST_SKIP() << "without FMA a membrane at the threshold may fall on the other side";
  for (const NeuronKind neuron : kNeurons) {
    for (const int width : {16, 32, 64}) {
      for (const ResetKind reset :
           {ResetKind::zero, ResetKind::subtract, ResetKind::subtract_after_decay, ResetKind::none}) {
        const Tile tile(width, reset, neuron);
        const Events events(kSteps, kInputs, 0.1);
        const Trace expected = plain_forward(tile, events);
        Trace trace(width);
        TileInput input{tile.weights.data(), tile.bias.data(), events.offsets.data(), events.ids.data()};
        trace.entries = tile.kernels().forward(width, input, tile.constants(), kSteps, trace.out());
        ASSERT_GT(expected.entries, 20u);
        ASSERT_EQ(trace.entries, expected.entries);
        EXPECT_EQ(trace.counts, expected.counts);
        EXPECT_EQ(trace.codes, expected.codes);
        EXPECT_EQ(trace.membranes, expected.membranes);
      }
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
  for (const NeuronKind neuron : kNeurons) {
    for (const int width : {16, 32, 64}) {
      const Tile tile(width, ResetKind::subtract, neuron);
      const int states = tile.kernels().states;
      const AlignedBuffer<float> currents = random_floats(kSteps * kSamples * width, "currents", 0.3);
      AlignedBuffer<float> carry(kSamples * states * width);
      std::vector<States> handed_on(kSamples * width, States{});
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
        const std::size_t entries = tile.kernels().forward_step(
            width, {tile.bias.data(), current, width, tile.weights.data(), offsets.data(), ids.data()},
            tile.constants(), kSamples, carry.data(),
            {counts.data(), 3, codes.data(), membranes.data(), spiked.data()});

        std::size_t entry = 0;
        for (int s = 0; s < kSamples; ++s) {
          std::uint64_t expected_spiked = 0;
          const std::size_t first = entry;
          for (int c = 0; c < width; ++c) {
            float sum = tile.bias[c] + current[s * width + c];
            for (std::uint32_t e = offsets[s]; e < offsets[s + 1]; ++e) sum += tile.weights[ids[e] * width + c];
            const auto [v, fires] = plain_step(tile, c, sum, handed_on[s * width + c]);
            for (int k = 0; k < states; ++k)
              EXPECT_EQ(carry[(s * states + k) * width + c], handed_on[s * width + c][k]);
            expected_spiked |= std::uint64_t{fires} << c;
            const bool active = tile.active(c, v);
            if (!fires && !active) continue;
            ASSERT_LT(entry, entries);
            EXPECT_EQ(codes[entry], c | (fires ? kSpiked : 0) | (active ? kActive : 0));
            EXPECT_EQ(membranes[entry++], v);
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

/// Everything that the delta recursion of one sample reads and writes, with random gradients.
struct BackwardCase {
  BackwardCase(const Tile& a_tile, bool through_reset)
      : tile(a_tile),
        events(kSteps, kInputs, 0.1),
        trace(plain_forward(a_tile, events)),
        entry_rows(rows_of(trace)),
        h(random_floats(trace.entries, "h", 0.2)),
        ds(random_floats(trace.entries, "ds")),
        rate(random_floats(a_tile.width, "rate")),
        rows(kSteps * a_tile.width),
        drives(2 * kSteps * a_tile.width),
        bias(a_tile.width),
        masks(kSteps),
        in{trace.entries, entry_rows.data(), trace.codes.data(), h.data(),
           through_reset ? trace.membranes.data() : nullptr} {}
  void run(const ConstantGradients* learned = nullptr, Bf16Pair* half_rows = nullptr) {
    tile.kernels().backward(tile.width, tile.constants(), in, ds.data(), rate.data(), kSteps,
                            {rows.data(), tile.width, bias.data(), masks.data(), drives.data(), half_rows}, learned);
  }
  const Tile& tile;
  Events events;
  Trace trace;
  std::vector<std::uint32_t> entry_rows;
  AlignedBuffer<float> h, ds, rate, rows, drives, bias;
  AlignedBuffer<std::uint64_t> masks;
  TraceIn in;
};

/// What one column's entries say of a step.
struct ColumnStep {
  bool spiked = false;
  float h = 0.0f;
  float through = 0.0f;  // h (dLoss/ds + rate)
  float potential = 0.0f;
};

std::vector<ColumnStep> steps_of_column(const BackwardCase& test, int c) {
  std::vector<ColumnStep> steps(kSteps);
  std::size_t entry = 0, active = 0;
  for (int step = 0; step < kSteps; ++step) {
    for (const std::size_t end = entry + test.trace.counts[step]; entry < end; ++entry) {
      const bool is_active = test.trace.codes[entry] & kActive;
      const float gradient = is_active ? test.ds[active++] : 0.0f;
      if ((test.trace.codes[entry] & kColumnBits) != c) continue;
      steps[step].spiked = test.trace.codes[entry] & kSpiked;
      if (!is_active) continue;
      steps[step].h = test.h[entry];
      steps[step].through = test.h[entry] * (gradient + test.rate[c]);
      steps[step].potential = test.trace.membranes[entry];
    }
  }
  return steps;
}

TEST_P(OnEveryTarget, BackwardEqualsThePlainLoop) {
  for (const NeuronKind neuron : kNeurons) {
    for (const int width : {16, 32, 64}) {
      for (const bool through_reset : {false, true}) {
        if (through_reset && neuron == NeuronKind::alif) continue;
        const Tile tile(width, ResetKind::subtract, neuron);
        BackwardCase test(tile, through_reset);
        // Learned constants are summed on the way: from states of no meaning, here.
        const int states = tile.kernels().states;
        const AlignedBuffer<float> seen = random_floats(kSteps * (states + 1) * width, "states");
        AlignedBuffer<float> sums(kNeuronConstants * width);
        const ConstantGradients learned{seen.data(), sums.data()};
        test.run(&learned);
        BackwardCase plain(tile, through_reset);
        plain.run();
        for (int i = 0; i < kSteps * width; ++i) ASSERT_EQ(plain.rows[i], test.rows[i]);
        for (int c = 0; c < width; ++c) ASSERT_EQ(plain.bias[c], test.bias[c]);

        for (int c = 0; c < width - 2; ++c) {
          const std::vector<ColumnStep> steps = steps_of_column(test, c);
          scalar::with_model(neuron, [&]<class Model>(Model) {
            const auto constants = tile.of_column<Model>(c);
            typename Model::template Constants<float> expected{};
            float later[Model::kStates] = {}, sum = 0.0f;
            for (int step = kSteps - 1; step >= 0; --step) {
              const ColumnStep& at = steps[step];
              float driven[Model::kStates], state[Model::kStates], before[Model::kStates], gradient = at.through;
              Model::drive(constants, at.potential, through_reset, driven);
              for (int k = through_reset ? 0 : Model::kFirstDriven; k < Model::kStates; ++k)
                gradient = std::fma(at.h * driven[k], later[k], gradient);
              std::copy_n(later, Model::kStates, before);
              const auto seen_of = [&](int k) { return seen[(step * (states + 1) + k) * width + c]; };
              for (int k = 0; k < Model::kStates; ++k) state[k] = seen_of(k);
              const float delta = Model::adjoint(constants, at.spiked, gradient, later);
              Model::add_gradients(at.spiked, seen_of(states), state, gradient, before, later, expected);
              sum += delta;
              expect_same(test.rows[step * width + c], delta, 10.0);
            }
            expect_same(test.bias[c], sum, 100.0);
            Model::visit(expected, [&](NeuronConstant which, float& value) {
              expect_same(sums[static_cast<int>(which) * width + c], value, 1000.0);
            });
          });
        }
      }
    }
  }
}

/// Two copies of a sample, taken back step by step, have the deltas that `backward` finds in one go.
TEST_P(OnEveryTarget, BackwardStepsAreBackward) {
  for (const NeuronKind neuron : kNeurons) {
    for (const int width : {16, 32, 64}) {
      for (const bool through_reset : {false, true}) {
        const Tile tile(width, ResetKind::subtract, neuron);
        BackwardCase whole(tile, through_reset);
        whole.run();
        const Trace& trace = whole.trace;

        AlignedBuffer<float> rows(2 * kSteps * width), later(2 * tile.kernels().states * width), drives(4 * width);
        std::size_t first = trace.entries, active = 0;
        for (std::size_t e = 0; e < trace.entries; ++e) active += (trace.codes[e] & kActive) != 0;
        for (int step = kSteps - 1; step >= 0; --step) {
          std::size_t active_here = 0;
          for (int left = trace.counts[step]; left > 0; --left) active_here += (trace.codes[--first] & kActive) != 0;
          active -= active_here;
          std::vector<float> gradient(whole.ds.data() + active, whole.ds.data() + active + active_here);
          gradient.insert(gradient.end(), whole.ds.data() + active, whole.ds.data() + active + active_here);
          const std::size_t firsts[] = {first, first};
          const StepEntries entries{firsts,         trace.counts.data() + step, 0, trace.codes.data(),
                                    whole.h.data(), whole.in.membranes};
          tile.kernels().backward_step(width, tile.constants(), entries, gradient.data(), whole.rate.data(), 2,
                                       later.data(), rows.data() + step * width, kSteps * width, whole.masks.data(),
                                       drives.data());
        }
        for (int i = 0; i < kSteps * width; ++i) {
          EXPECT_EQ(rows[i], whole.rows[i]);
          EXPECT_EQ(rows[kSteps * width + i], whole.rows[i]);
        }
      }
    }
  }
}

/// A sample traced once more from its spikes has the states that it had.
TEST_P(OnEveryTarget, RetraceFindsTheStatesAgain) {
  if (!has_fma()) GTEST_SKIP() << "without FMA a membrane at the threshold may fall on the other side";
  for (const NeuronKind neuron : kNeurons) {
    for (const int width : {16, 32, 64}) {
      const Tile tile(width, ResetKind::zero, neuron);
      const BackwardCase test(tile, false);
      std::vector<std::uint64_t> masks(kSteps);
      masks_of_spikes(test.in, kSteps, masks.data());
      const int states = tile.kernels().states;
      AlignedBuffer<float> found(kSteps * (states + 1) * width);
      const Events own(kSteps, kInputs, 0.02);
      const TileInput input{tile.weights.data(), tile.bias.data(), test.events.offsets.data(), test.events.ids.data()};
      tile.kernels().retrace(width, input, {tile.weights.data(), own.offsets.data(), own.ids.data()}, tile.constants(),
                             kSteps, masks.data(), found.data());
      for (int c = 0; c < width; ++c) {
        scalar::with_model(neuron, [&]<class Model>(Model) {
          const auto constants = tile.of_column<Model>(c);
          float state[Model::kStates] = {};
          for (int step = 0; step < kSteps; ++step) {
            float sum = tile.bias[c];
            const auto add = [&](const Events& events, int row) {
              for (std::uint32_t e = events.offsets[row]; e < events.offsets[row + 1]; ++e)
                sum += tile.weights[events.ids[e] * width + c];
            };
            add(test.events, step);
            if (step > 0) add(own, step - 1);
            Model::integrate(constants, sum, state);
            const float* at = found.data() + step * (states + 1) * width + c;
            for (int k = 0; k < states; ++k) ASSERT_EQ(at[k * width], state[k]) << "step " << step;
            ASSERT_EQ(at[states * width], sum);
            Model::carry(constants, bool(masks[step] >> c & 1), state);
          }
        });
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
    trace.entries = tile.kernels().forward(width, input, tile.constants(), kSteps, trace.out());
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
