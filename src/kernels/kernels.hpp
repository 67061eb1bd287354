// The hot loops. Each works on one tile: `width` (16, 32 or 64) neighbouring neurons whose weights lie together,
// (inputs, width) row-major, and on the rows (sample, step) of one or some samples. All arrays of `width` floats are
// aligned to 64 bytes. Dispatched at run time to the best instruction set.
//
// What the bits depend on (DESIGN: determinism): forward, ascending input id; weight gradient, one accumulator per
// column in (sample, step) order; input gradient, 16 virtual lanes and one fixed reduction tree. So all instruction
// sets with FMA give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <spikeloom/network.hpp>
#include "network/neuron_constants.hpp"

namespace spikeloom::kernels {

/// One entry of a step's list: a column that spiked or is in the active set. Low six bits: the column.
inline constexpr std::uint8_t kColumnBits = 0x3F;
inline constexpr std::uint8_t kSpiked = 0x40;
inline constexpr std::uint8_t kActive = 0x80;

/// Two columns of a row in bf16 (the upper half of a float32, rounded to nearest even, |x| < 1e-30 as 0): of each 32
/// columns, word k holds column k in its lower half and column k + 16 in its upper one. So a row of 32 or 64 columns
/// has width / 2 words, and unpacks into registers of neighbouring columns.
using Bf16Pair = std::uint32_t;

/// Constants of a tile's neurons, `width` floats each; padded columns have threshold and window +inf and all else 0.
struct TileConstants {
  const float* columns[kNeuronConstants] = {};
  const float*& operator[](NeuronConstant which) { return columns[static_cast<int>(which)]; }
  const float* operator[](NeuronConstant which) const { return columns[static_cast<int>(which)]; }
};

/// Where a sample's input comes from: spikes (ids of step t are ids[offsets[t]] .. ids[offsets[t+1]]) times `weights`,
/// or, if `currents` is set, rows (steps, current_stride) of W s as a matrix product made them. `bias` is added to
/// both.
struct TileInput {
  const float* weights = nullptr;
  const float* bias = nullptr;
  const std::uint32_t* offsets = nullptr;
  const std::uint32_t* ids = nullptr;
  const float* currents = nullptr;
  std::ptrdiff_t current_stride = 0;
  const Bf16Pair* half_weights = nullptr;  // if set, read in place of `weights` (spiking layers, width 32 or 64)
  float spike_value = 1.0f;                // what a spike counts: factor of the sum of the rows of `weights`
  const float* carried = nullptr;          // (states, width): what neurons hand on to the first step; null: 0
};

/// What a recurrent layer's own spikes of the step before add, once all are known: `weights` (neurons of the layer,
/// width), lists of the same sample as in TileInput, and `before`, the spikes of the step before the first. Without
/// weights there is nothing.
struct OwnInput {
  const float* weights = nullptr;
  const std::uint32_t* offsets = nullptr;
  const std::uint32_t* ids = nullptr;
  std::span<const std::uint32_t> before = {};
};

/// Lists that the forward pass writes for one sample: counts[t] entries of step t, then codes and membranes of all
/// steps one after the other. Room for steps counts and steps * width codes and membranes; what is behind the entries
/// may be written, too.
struct TraceOut {
  std::uint8_t* counts;
  std::uint8_t* codes;
  float* membranes;
  float* carry = nullptr;  // (states, width): what neurons hand on from the last step, if it is wanted
};

/// All steps of one sample of a tile of leaky integrators: writes u to membrane[t * stride + column], and what they
/// hand on from the last step to `carry` (width), if it is wanted.
void forward_membrane(int width, const TileInput& input, const TileConstants& constants, int steps, float* membrane,
                      std::ptrdiff_t stride, float* carry = nullptr);

/// What one step of many samples of a tile of a recurrent layer receives: `currents` are W s of the step, `ids` the
/// layer's spikes of the step before, of sample s ids[offsets[s]] .. ids[offsets[s + 1]], ascending.
struct StepInput {
  const float* bias;
  const float* currents;
  std::ptrdiff_t current_stride;   // from sample to sample
  const float* recurrent_weights;  // (neurons of the layer, width)
  const std::uint32_t* offsets;
  const std::uint32_t* ids;
};

/// What it gives: as TraceOut, of all samples one after the other, and the columns that spiked as bits, per sample.
/// Room for samples * width codes and membranes.
struct StepOut {
  std::uint8_t* counts;
  std::ptrdiff_t count_stride;  // from sample to sample
  std::uint8_t* codes;
  float* membranes;
  std::uint64_t* spiked;
};

/// h(u - threshold) of `count` membranes; no window.
void surrogate_derivatives(const SurrogateSpec& surrogate, float threshold, const float* membranes, std::size_t count,
                           float* derivatives);

/// One tile's entries of a sample: counts[t] of step t, and their codes one after the other, with kCodePadding readable
/// bytes behind the last.
struct TileList {
  const std::uint8_t* counts;
  const std::uint8_t* codes;
};
inline constexpr std::size_t kCodePadding = 16;

/// Concatenates the entries that carry `flag`, step by step and tile after tile, as ids (tile * width + column) to
/// ids[begin] .. ids[end], which must be as many as there are; offsets[t] is where step t begins. Uses up `tiles`.
void merge_lists(std::span<TileList> tiles, int width, std::uint8_t flag, int steps, std::uint32_t begin,
                 std::uint32_t end, std::uint32_t* offsets, std::uint32_t* ids);

/// entry_rows[e] = the step of entry e, from the counts of a sample's steps. Room for their sum and 8 more.
void expand_rows(const std::uint8_t* counts, int steps, std::uint32_t* entry_rows);

/// What the delta recursion of one sample reads: the sample's lists as the forward pass wrote them, with their steps
/// expanded, and h in place of the membranes.
struct TraceIn {
  std::size_t entries;
  const std::uint32_t* entry_rows;
  const std::uint8_t* codes;
  const float* derivatives;
  const float* membranes = nullptr;  // only with the gradient through the reset
};

/// The entries of one step of many samples in the tile's lists: of sample s the counts[s * count_stride] from first[s]
/// on.
struct StepEntries {
  const std::size_t* first;
  const std::uint8_t* counts;
  std::ptrdiff_t count_stride;
  const std::uint8_t* codes;
  const float* derivatives;
  const float* membranes = nullptr;  // only with the gradient through the reset
};

/// Where the delta recursion of one sample goes: rows[t * stride + column] is k delta[t], that is dLoss/dI[t];
/// `bias_gradient` (width) gets its sum over t, last step first, added. With `half_rows` (steps, width / 2), k delta is
/// written there, as bf16, and `rows` is scratch. `spike_masks` (steps) and `drives` (states of the model, steps,
/// width) are scratch.
struct DeltaOut {
  float* rows;
  std::ptrdiff_t stride;
  float* bias_gradient;
  std::uint64_t* spike_masks;
  float* drives;
  Bf16Pair* half_rows = nullptr;
};

/// For constants that are learned: the states as `retrace` made them, and dLoss/d(constant) of the sample, written.
/// With `before`, (states, width), the states of the step before the first, and its spikes, they count in what that
/// step hands on, too.
struct ConstantGradients {
  const float* states;  // (steps, states of the model and 1 for the input, width)
  float* sums;          // (kNeuronConstants, width)
  const float* before = nullptr;
  std::uint64_t spiked_before = 0;
};

/// The kernels of a model of spiking neurons (network/models): one translation unit each, in neurons/.
struct SpikingKernels {
  int states;  // numbers that a neuron hands on from step to step

  /// All steps of one sample of a tile. Returns the number of entries.
  std::size_t (*forward)(int width, const TileInput& input, const TileConstants& constants, int steps,
                         const TraceOut& out);

  /// One step of many samples: bias plus current, plus the rows of the recurrent weights in ascending id. `carry`
  /// (samples, states, width) is what neurons hand on from step to step, 0 before the first. Returns the number of
  /// entries.
  std::size_t (*forward_step)(int width, const StepInput& input, const TileConstants& constants, int samples,
                              float* carry, const StepOut& out);

  /// The states of one sample once more, its spikes being known (`spike_masks`, one per step): writes the states and,
  /// last, the input current to `states` (steps, states + 1, width).
  void (*retrace)(int width, const TileInput& input, const OwnInput& own, const TileConstants& constants, int steps,
                  const std::uint64_t* spike_masks, float* states);

  /// Delta recursion of one sample, backwards in time. `spike_gradient` holds dLoss/ds of the active entries, in list
  /// order; `rate_gradient` (width) is added to each. With trace.membranes the gradient goes through the reset too;
  /// with `learned`, to the constants.
  void (*backward)(int width, const TileConstants& constants, const TraceIn& trace, const float* spike_gradient,
                   const float* rate_gradient, int steps, const DeltaOut& out, const ConstantGradients* learned);

  /// One step of it for many samples. `spike_gradient` holds dLoss/ds of the step's active entries, sample after
  /// sample, all of it but `rate_gradient` (width). `later` (samples, states, width) is dLoss/d(handed on) of this step
  /// on entry and of the step before on return; k delta[t] goes to rows[s * stride + column]. `spike_masks` (samples)
  /// and `drives` (states, samples, width) are scratch.
  void (*backward_step)(int width, const TileConstants& constants, const StepEntries& entries,
                        const float* spike_gradient, const float* rate_gradient, int samples, float* later, float* rows,
                        std::ptrdiff_t stride, std::uint64_t* spike_masks, float* drives);
};

const SpikingKernels& spiking_kernels(NeuronKind neuron);

/// spike_masks[t] = the spikes of step t as bits, from a sample's entries.
void masks_of_spikes(const TraceIn& trace, int steps, std::uint64_t* spike_masks);

/// The delta recursion of leaky integrators: `rows` holds dLoss/du[t] on entry and k delta[t] on return, whose sum over
/// t, last step first, is added to `bias_gradient`.
void backward_membrane(int width, const TileConstants& constants, int steps, float* rows, std::ptrdiff_t stride,
                       float* bias_gradient);

/// Whether a gradient is added to, or starts anew from 0.
enum class Gradient { add, start };

/// gradient[id] (width) += sum of rows[r] over the events r of input id, for ids in [first, last); the events of id are
/// event_rows[starts[id]] .. event_rows[starts[id + 1]], ascending.
void weight_gradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                     std::uint32_t last, const float* rows, std::ptrdiff_t stride, Gradient state, float* gradient);
/// The same with packed rows: (rows, width) float32 or (rows, width / 2) bf16; the sums are float32.
inline void weight_gradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows,
                            std::uint32_t first, std::uint32_t last, const float* rows, Gradient state,
                            float* gradient) {
  weight_gradient(width, starts, event_rows, first, last, rows, width, state, gradient);
}
void weight_gradient(int width, const std::uint32_t* starts, const std::uint32_t* event_rows, std::uint32_t first,
                     std::uint32_t last, const Bf16Pair* rows, Gradient state, float* gradient);

/// sums[s] (width) += sum of rows[ids[e]] over the events e of s in [offsets[s], offsets[s + 1]), s < count: the same
/// sum, of what spikes bring.
inline void add_rows(int width, const std::uint32_t* offsets, const std::uint32_t* ids, std::uint32_t count,
                     const float* rows, Gradient state, float* sums) {
  weight_gradient(width, offsets, ids, 0, count, rows, state, sums);
}

/// out[e - offsets[0]] = rows[r] . weights[ids[e]] for the events e of rows r in [0, row_count): event e of row r in
/// [offsets[r], offsets[r+1]).
void input_gradient(int width, const float* weights, const float* rows, std::ptrdiff_t stride, std::size_t row_count,
                    const std::uint32_t* offsets, const std::uint32_t* ids, float* out);
/// The same with packed rows, float32 or (rows, width / 2) bf16; products of bf16 are exact, sums float32.
inline void input_gradient(int width, const float* weights, const float* rows, std::size_t row_count,
                           const std::uint32_t* offsets, const std::uint32_t* ids, float* out) {
  input_gradient(width, weights, rows, width, row_count, offsets, ids, out);
}
void input_gradient(int width, const Bf16Pair* weights, const Bf16Pair* rows, std::size_t row_count,
                    const std::uint32_t* offsets, const std::uint32_t* ids, float* out);

/// The bf16 copy of `count` rows of `width` (32 or 64) floats.
void round_rows(int width, const float* rows, std::size_t count, Bf16Pair* out);

/// sum[e] = parts[0][e] + parts[1][e] + ..., from left to right.
void add_in_order(const std::vector<const float*>& parts, std::size_t count, float* sum);

/// out[r] (width) = bias + sum over i of x[r * x_stride + i] weights[i] (ascending i): a linear layer on dense inputs.
void linear_rows(int width, const float* x, std::ptrdiff_t x_stride, int inputs, const float* weights,
                 const float* bias, std::size_t rows, float* out, std::ptrdiff_t out_stride);

/// gradient[i] (width) += sum over rows of x[r * x_stride + i] rows[r], i < inputs, rows ascending: its weight
/// gradient.
void linear_weight_gradient(int width, const float* x, std::ptrdiff_t x_stride, int inputs, const float* rows,
                            std::ptrdiff_t stride, std::size_t row_count, float* gradient);

/// Names of the instruction sets that this binary has and this CPU can run, best first; the one in use is the first
/// unless limited.
std::vector<std::string> available_targets();
/// Uses only the named instruction set from now on (tests); an empty name lifts the limit. Not while kernels run.
void limit_to_target(const std::string& name);
/// Use of AVX512-BF16's dot-product instruction, where there is one. The bits are those of shifts.
enum class Bf16Dot { where_it_pays, always, never };
/// Not while kernels run (tests).
void use_bf16_dot(Bf16Dot use);
/// Whether pairs are multiplied by it.
bool multiplies_by_bf16_dot();
/// Whether rows are added by it as well. Zen 4 does so in half the time of shifts; on Emerald Rapids a sum would wait
/// ten cycles for its next addend (3.1 ns a row of 64 against 2.0 by shifts).
bool adds_by_bf16_dot();

}  // namespace spikeloom::kernels
