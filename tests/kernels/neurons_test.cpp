// The passes of every neuron model against plain loops, on every instruction set of this CPU.
#include "kernel_case.hpp"

namespace spikeloom::kernels {
namespace {

class Neurons : public OnEveryTarget {};

TEST_P(Neurons, ForwardEqualsThePlainLoop) {
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
        trace.end(tile.kernels().forward(width, input, tile.constants(), kSteps, trace.out()));
        ASSERT_GT(expected.entries, 20u);
        ASSERT_EQ(trace.entries, expected.entries);
        EXPECT_EQ(trace.counts, expected.counts);
        EXPECT_EQ(trace.codes, expected.codes);
        EXPECT_EQ(trace.membranes, expected.membranes);
      }
    }
  }
}

/// `samples` samples step by step, with random currents and own spikes, and the same in a plain loop.
TEST_P(Neurons, ForwardStepEqualsThePlainLoop) {
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

TEST_P(Neurons, BackwardEqualsThePlainLoop) {
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
TEST_P(Neurons, BackwardStepsAreBackward) {
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
TEST_P(Neurons, RetraceFindsTheStatesAgain) {
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

INSTANTIATE_TEST_SUITE_P(Targets, Neurons, ::testing::ValuesIn(available_targets()),
                         [](const auto& target) { return target.param; });

}  // namespace
}  // namespace spikeloom::kernels
