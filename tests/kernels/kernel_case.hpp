// What the tests of kernels work on: events, a tile of neurons, and the plain loops that its kernels must equal.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/aligned_buffer.hpp"
#include "core/random.hpp"
#include "kernels/kernels.hpp"
#include "network/neuron_constants.hpp"
#include "network/scalar_models.hpp"

namespace spikeloom::kernels {

inline constexpr int kInputs = 150;
inline constexpr int kSteps = 37;

inline AlignedBuffer<float> random_floats(std::size_t size, const char* purpose, double scale = 1.0) {
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

inline constexpr NeuronKind kNeurons[] = {NeuronKind::lif, NeuronKind::cuba_lif, NeuronKind::alif, NeuronKind::adlif,
                                          NeuronKind::se_adlif};

struct Trace {
  explicit Trace(int width) : counts(kSteps), codes(kSteps * width), membranes(kSteps * width) {}
  TraceOut out() { return {counts.data(), codes.data(), membranes.data()}; }
  /// Takes the kernel's answer; what it left behind the entries means nothing.
  void end(std::size_t count) {
    entries = count;
    std::fill(codes.begin() + static_cast<std::ptrdiff_t>(count), codes.end(), std::uint8_t{0});
    std::fill(membranes.begin() + static_cast<std::ptrdiff_t>(count), membranes.end(), 0.0f);
  }
  std::vector<std::uint8_t> counts, codes;
  std::vector<float> membranes;
  std::size_t entries = 0;
};

/// What neurons hand on, one after the other: room for any model.
using States = std::array<float, 2>;

/// One step of column c in a plain loop: potential and spike.
inline std::pair<float, bool> plain_step(const Tile& tile, int c, float input, States& handed_on) {
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
inline Trace plain_forward(const Tile& tile, const Events& events) {
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

inline std::vector<std::uint32_t> rows_of(const Trace& trace) {
  std::vector<std::uint32_t> rows(trace.entries + 8);
  expand_rows(trace.counts.data(), kSteps, rows.data());
  return rows;
}

/// A test per instruction set of this CPU.
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

}  // namespace spikeloom::kernels
