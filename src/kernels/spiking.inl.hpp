// The kernels of a model of spiking neurons, SPIKELOOM_MODEL, as SPIKELOOM_KERNELS: included by one file for each model
// in neurons/, once per instruction set, hence no include guard.
//
// The loop over time is inside, the states stay in registers, and each input spike adds one row of weights.
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

#include "network/models/all.inl.hpp"

#include "kernels/rows.inl.hpp"
#include "kernels/tile_input.inl.hpp"

using Model = SPIKELOOM_MODEL;
constexpr int kStates = Model::kStates;
using ModelConstants = Model::Constants<Lanes>;

HWY_INLINE ModelConstants load_constants(const TileConstants& c, int at) {
  ModelConstants constants;
  Model::visit(constants, [&](NeuronConstant which, Lanes& value) HWY_ATTR { value = load(c[which] + at); });
  return constants;
}

HWY_INLINE Model::Constants<float> constants_of(const TileConstants& c, int column) {
  Model::Constants<float> constants;
  Model::visit(constants, [&](NeuronConstant which, float& value) HWY_ATTR { value = c[which][column]; });
  return constants;
}

/// Where a step's entries go, and how many there are so far.
struct EntryLists {
  std::uint8_t* codes;
  float* membranes;
  std::size_t count = 0;
};

/// Appends the neurons of a register that spiked or are active, ascending; the register holds those from `first_column`
/// on. Always a whole register is written, whatever is listed: a branch on it would wait for the step's sums, and with
/// every misprediction the rows of the next step would be asked for late.
HWY_INLINE void append(int first_column, Lanes potential, LaneMask spiked, LaneMask active, EntryLists& lists) {
  const hn::RebindToSigned<Floats> words;
  const hn::Rebind<std::uint8_t, Floats> bytes;
  const auto flags = [&](LaneMask of, std::uint8_t flag)
                         HWY_ATTR { return hn::IfThenElseZero(hn::RebindMask(words, of.m), hn::Set(words, flag)); };
  const auto code = hn::Or(hn::Iota(words, first_column), hn::Or(flags(spiked, kSpiked), flags(active, kActive)));
  const hn::Mask<Floats> listed = hn::Or(spiked.m, active.m);
  hn::StoreU(hn::DemoteTo(bytes, hn::Compress(code, hn::RebindMask(words, listed))), bytes, lists.codes + lists.count);
  hn::StoreU(hn::Compress(potential.v, listed), Floats(), lists.membranes + lists.count);
  lists.count += hn::CountTrue(Floats(), listed);
}

/// One step of a tile: `states` go from step to step. Returns the columns that spiked, as bits.
template <int kVectors>
HWY_INLINE std::uint64_t advance(const TileConstants& c, const Lanes (&input)[kVectors],
                                 Lanes (&states)[kVectors][kStates], EntryLists& lists) {
  std::uint64_t spiked_columns = 0;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const int at = i * kLanes;
    const ModelConstants constants = load_constants(c, at);
    const Lanes potential = Model::integrate(constants, input[i], states[i]);
    const LaneMask spiked = potential > constants.threshold;
    const LaneMask active = (potential > load(c[NeuronConstant::window_low] + at)) &
                            (potential <= load(c[NeuronConstant::window_high] + at));
    Model::carry(constants, spiked, states[i]);
    append(at, potential, spiked, active, lists);
    spiked_columns |= bits_of(spiked) << at;
  }
  return spiked_columns;
}

/// From what was handed on, (states, width), or from 0.
template <int kVectors>
HWY_INLINE void start(Lanes (&states)[kVectors][kStates], const float* carried = nullptr) {
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    SPIKELOOM_UNROLL
    for (int k = 0; k < kStates; ++k)
      states[i][k] = carried ? load(carried + (k * kVectors + i) * kLanes) : lanes(0.0f);
  }
}

template <int kVectors>
HWY_INLINE void hand_on(const Lanes (&states)[kVectors][kStates], float* carry) {
  if (!carry) return;
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    SPIKELOOM_UNROLL
    for (int k = 0; k < kStates; ++k) store(states[i][k], carry + (k * kVectors + i) * kLanes);
  }
}

template <int kWidth, class Rows>
std::size_t forward_of(const TileInput& input, const typename Rows::Element* weights, const TileConstants& c, int steps,
                       const TraceOut& out) {
  constexpr int kVectors = kWidth / kLanes;
  Lanes states[kVectors][kStates];
  start(states, input.carried);
  EntryLists lists{out.codes, out.membranes};
  for (int step = 0; step < steps; ++step) {
    Lanes sum[kVectors];
    input_of_step<kVectors, Rows>(input, weights, step, sum);
    const std::size_t before = lists.count;
    advance(c, sum, states, lists);
    out.counts[step] = static_cast<std::uint8_t>(lists.count - before);
  }
  hand_on(states, out.carry);
  return lists.count;
}

template <int kWidth>
std::size_t forward_step_of(const StepInput& input, const TileConstants& c, int samples, float* carry,
                            const StepOut& out) {
  constexpr int kVectors = kWidth / kLanes;
  EntryLists lists{out.codes, out.membranes};
  for (int sample = 0; sample < samples; ++sample) {
    const float* current = input.currents + sample * input.current_stride;
    float* carried = carry + sample * kStates * kWidth;
    Lanes sum[kVectors], states[kVectors][kStates];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      sum[i] = load(input.bias + i * kLanes) + load(current + i * kLanes);
      SPIKELOOM_UNROLL
      for (int k = 0; k < kStates; ++k) states[i][k] = load(carried + k * kWidth + i * kLanes);
    }
    const std::uint32_t* end = input.ids + input.offsets[sample + 1];
    for (const std::uint32_t* id = input.ids + input.offsets[sample]; id != end; ++id)
      FullRows::add(input.recurrent_weights + std::size_t{*id} * kWidth, sum);
    const std::size_t before = lists.count;
    out.spiked[sample] = advance(c, sum, states, lists);
    out.counts[sample * out.count_stride] = static_cast<std::uint8_t>(lists.count - before);
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      SPIKELOOM_UNROLL
      for (int k = 0; k < kStates; ++k) store(states[i][k], carried + k * kWidth + i * kLanes);
    }
  }
  return lists.count;
}

template <int kWidth, class Rows>
void retrace_of(const TileInput& input, const typename Rows::Element* weights, const OwnInput& own,
                const TileConstants& c, int steps, const std::uint64_t* spike_masks, float* out) {
  constexpr int kVectors = kWidth / kLanes;
  Lanes states[kVectors][kStates];
  start(states, input.carried);
  for (int step = 0; step < steps; ++step, out += (kStates + 1) * kWidth) {
    Lanes sum[kVectors];
    input_of_step<kVectors, Rows>(input, weights, step, sum);
    if (own.weights) {
      const std::uint32_t* id = step > 0 ? own.ids + own.offsets[step - 1] : own.before.data();
      const std::uint32_t* end = step > 0 ? own.ids + own.offsets[step] : id + own.before.size();
      for (; id != end; ++id) FullRows::add(own.weights + std::size_t{*id} * kWidth, sum);
    }
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const int at = i * kLanes;
      const ModelConstants constants = load_constants(c, at);
      Model::integrate(constants, sum[i], states[i]);
      SPIKELOOM_UNROLL
      for (int k = 0; k < kStates; ++k) store(states[i][k], out + k * kWidth + at);
      store(sum[i], out + kStates * kWidth + at);
      Model::carry(constants, mask_of(spike_masks[step] >> at), states[i]);
    }
  }
}

/// States of which a list keeps what a spike drives.
template <bool kThroughReset>
constexpr int kFirstListed = kThroughReset ? 0 : Model::kFirstDriven;

/// What an active entry says, in rows that are 0 elsewhere: h (dLoss/ds + rate gradient), and of each state that a
/// spike drives h d(handed on)/ds, `drive_stride` floats from state to state.
template <bool kThroughReset>
HWY_INLINE void write_active(const TileConstants& c, int column, float h, float gradient, float potential, float* row,
                             float* drives, std::ptrdiff_t drive_stride) {
  row[column] = h * gradient;
  if constexpr (kFirstListed<kThroughReset> < kStates) {
    float driven[kStates];
    Model::drive(constants_of(c, column), potential, kThroughReset, driven);
    for (int k = kFirstListed<kThroughReset>; k < kStates; ++k) drives[k * drive_stride + column] = h * driven[k];
  }
}

/// dLoss/d(potential) of a register of neurons: what `write_active` wrote, times what is handed on.
template <bool kThroughReset>
HWY_INLINE Lanes gradient_of(const float* row, const float* drives, std::ptrdiff_t drive_stride,
                             const Lanes (&later)[kStates]) {
  Lanes gradient = load(row);
  SPIKELOOM_UNROLL
  for (int k = kFirstListed<kThroughReset>; k < kStates; ++k)
    gradient = mul_add(load(drives + k * drive_stride), later[k], gradient);
  return gradient;
}

template <int kWidth, bool kThroughReset>
HWY_INLINE void clear_rows(float* row, float* drives, std::ptrdiff_t drive_stride) {
  std::fill_n(row, kWidth, 0.0f);
  for (int k = kFirstListed<kThroughReset>; k < kStates; ++k) std::fill_n(drives + k * drive_stride, kWidth, 0.0f);
}

// Entries of a step from which on a loop per step is predicted well enough; below, one loop over all entries is faster,
// although each then waits for the mask that the one before has stored.
constexpr std::size_t kBusyStep = 4;

/// First pass over a sample's lists. Vectors are read from the rows only in the second pass, a whole sample later: read
/// at once, each would wait for the single floats to leave the store buffer.
template <int kWidth, bool kThroughReset>
void scatter_entries(const TileConstants& c, const TraceIn& trace, const float* spike_gradient,
                     const float* rate_gradient, int steps, const DeltaOut& out) {
  const std::ptrdiff_t drive_stride = static_cast<std::ptrdiff_t>(steps) * kWidth;
  for (int step = 0; step < steps; ++step) {
    clear_rows<kWidth, kThroughReset>(out.rows + step * out.stride, out.drives + step * kWidth, drive_stride);
    out.spike_masks[step] = 0;
  }
  // Writes what entry `entry` of `step` says, and returns its spike as a bit.
  const auto scatter = [&](std::size_t entry, std::size_t step) HWY_ATTR {
    const std::uint8_t code = trace.codes[entry];
    const int column = code & kColumnBits;
    if (code & kActive) {
      write_active<kThroughReset>(c, column, trace.derivatives[entry], *spike_gradient++ + rate_gradient[column],
                                  kThroughReset ? trace.membranes[entry] : 0.0f, out.rows + step * out.stride,
                                  out.drives + step * kWidth, drive_stride);
    }
    return std::uint64_t{(code & kSpiked) != 0} << column;
  };
  const std::uint32_t* step_of = trace.entry_rows;
  if (trace.entries < kBusyStep * steps) {
    for (std::size_t entry = 0; entry < trace.entries; ++entry)
      out.spike_masks[step_of[entry]] |= scatter(entry, step_of[entry]);
    return;
  }
  for (std::size_t entry = 0; entry < trace.entries;) {
    const std::uint32_t step = step_of[entry];
    std::uint64_t spiked = 0;
    for (; entry < trace.entries && step_of[entry] == step; ++entry) spiked |= scatter(entry, step);
    out.spike_masks[step] = spiked;
  }
}

template <int kWidth, bool kThroughReset, bool kHalf>
void backward_of(const TileConstants& c, const TraceIn& trace, const float* spike_gradient, const float* rate_gradient,
                 int steps, const DeltaOut& out) {
  constexpr int kVectors = kWidth / kLanes;
  const std::ptrdiff_t drive_stride = static_cast<std::ptrdiff_t>(steps) * kWidth;
  scatter_entries<kWidth, kThroughReset>(c, trace, spike_gradient, rate_gradient, steps, out);
  Lanes later[kVectors][kStates], bias[kVectors];
  start(later);
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) bias[i] = load(out.bias_gradient + i * kLanes);
  for (int step = steps - 1; step >= 0; --step) {
    float* row = out.rows + step * out.stride;
    Lanes delta[kVectors];
    SPIKELOOM_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const int at = i * kLanes;
      const Lanes gradient =
          gradient_of<kThroughReset>(row + at, out.drives + step * kWidth + at, drive_stride, later[i]);
      delta[i] = Model::adjoint(load_constants(c, at), mask_of(out.spike_masks[step] >> at), gradient, later[i]);
      bias[i] = bias[i] + delta[i];
    }
    if constexpr (kHalf) {
      store_pairs(delta, out.half_rows + step * (kWidth / 2));
    } else {
      SPIKELOOM_UNROLL
      for (int i = 0; i < kVectors; ++i) store(delta[i], row + i * kLanes);
    }
  }
  SPIKELOOM_UNROLL
  for (int i = 0; i < kVectors; ++i) store(bias[i], out.bias_gradient + i * kLanes);
}

/// The same with the gradients of the constants, register by register: their sums alone fill the register file.
template <int kWidth, bool kThroughReset>
void backward_learned_of(const TileConstants& c, const TraceIn& trace, const float* spike_gradient,
                         const float* rate_gradient, int steps, const DeltaOut& out, const ConstantGradients& learned) {
  const std::ptrdiff_t drive_stride = static_cast<std::ptrdiff_t>(steps) * kWidth;
  scatter_entries<kWidth, kThroughReset>(c, trace, spike_gradient, rate_gradient, steps, out);
  std::fill_n(learned.sums, kNeuronConstants * kWidth, 0.0f);  // those that the model lacks, too
  for (int at = 0; at < kWidth; at += kLanes) {
    const ModelConstants constants = load_constants(c, at);
    ModelConstants sums;
    const auto sum_of = [&](NeuronConstant which)
                            HWY_ATTR { return learned.sums + static_cast<int>(which) * kWidth + at; };
    Model::visit(sums, [&](NeuronConstant, Lanes& sum) HWY_ATTR { sum = lanes(0.0f); });
    Lanes later[1][kStates], bias = load(out.bias_gradient + at);
    start(later);
    for (int step = steps - 1; step >= 0; --step) {
      float* row = out.rows + step * out.stride + at;
      const float* states = learned.states + static_cast<std::ptrdiff_t>(step) * (kStates + 1) * kWidth + at;
      const LaneMask spiked = mask_of(out.spike_masks[step] >> at);
      const Lanes gradient = gradient_of<kThroughReset>(row, out.drives + step * kWidth + at, drive_stride, later[0]);
      Lanes state[kStates], before[kStates];
      SPIKELOOM_UNROLL
      for (int k = 0; k < kStates; ++k) state[k] = load(states + k * kWidth), before[k] = later[0][k];
      const Lanes delta = Model::adjoint(constants, spiked, gradient, later[0]);
      Model::add_gradients(spiked, load(states + kStates * kWidth), state, gradient, before, later[0], sums);
      bias = bias + delta;
      store(delta, row);
    }
    if (learned.before) {
      Lanes state[kStates], no_state[kStates];
      SPIKELOOM_UNROLL
      for (int k = 0; k < kStates; ++k) state[k] = load(learned.before + k * kWidth + at), no_state[k] = lanes(0.0f);
      Model::add_gradients(mask_of(learned.spiked_before >> at), lanes(0.0f), state, lanes(0.0f), later[0], no_state,
                           sums);
    }
    Model::visit(sums, [&](NeuronConstant which, Lanes& sum) HWY_ATTR { store(sum, sum_of(which)); });
    store(bias, out.bias_gradient + at);
  }
}

/// Writes the entries of a step of all samples: all of them before any vector is read, as in `scatter_entries`.
template <int kWidth, bool kThroughReset>
void scatter_step(const TileConstants& c, const StepEntries& entries, const float* spike_gradient,
                  const float* rate_gradient, int samples, float* rows, std::ptrdiff_t stride,
                  std::uint64_t* spike_masks, float* drives) {
  const std::ptrdiff_t drive_stride = static_cast<std::ptrdiff_t>(samples) * kWidth;
  for (int sample = 0; sample < samples; ++sample) {
    float* row = rows + sample * stride;
    clear_rows<kWidth, kThroughReset>(row, drives + sample * kWidth, drive_stride);
    std::uint64_t spiked = 0;
    const std::size_t end = entries.first[sample] + entries.counts[sample * entries.count_stride];
    for (std::size_t entry = entries.first[sample]; entry < end; ++entry) {
      const std::uint8_t code = entries.codes[entry];
      const int column = code & kColumnBits;
      spiked |= std::uint64_t{(code & kSpiked) != 0} << column;
      if (!(code & kActive)) continue;
      write_active<kThroughReset>(c, column, entries.derivatives[entry], *spike_gradient++ + rate_gradient[column],
                                  kThroughReset ? entries.membranes[entry] : 0.0f, row, drives + sample * kWidth,
                                  drive_stride);
    }
    spike_masks[sample] = spiked;
  }
}

template <int kWidth, bool kThroughReset>
void backward_step_of(const TileConstants& c, const StepEntries& entries, const float* spike_gradient,
                      const float* rate_gradient, int samples, float* later, float* rows, std::ptrdiff_t stride,
                      std::uint64_t* spike_masks, float* drives) {
  const std::ptrdiff_t drive_stride = static_cast<std::ptrdiff_t>(samples) * kWidth;
  scatter_step<kWidth, kThroughReset>(c, entries, spike_gradient, rate_gradient, samples, rows, stride, spike_masks,
                                      drives);
  for (int sample = 0; sample < samples; ++sample) {
    float* later_row = later + sample * kStates * kWidth;
    SPIKELOOM_UNROLL
    for (int at = 0; at < kWidth; at += kLanes) {
      float* row = rows + sample * stride + at;
      Lanes handed_on[kStates];
      SPIKELOOM_UNROLL
      for (int k = 0; k < kStates; ++k) handed_on[k] = load(later_row + k * kWidth + at);
      const Lanes gradient = gradient_of<kThroughReset>(row, drives + sample * kWidth + at, drive_stride, handed_on);
      store(Model::adjoint(load_constants(c, at), mask_of(spike_masks[sample] >> at), gradient, handed_on), row);
      SPIKELOOM_UNROLL
      for (int k = 0; k < kStates; ++k) store(handed_on[k], later_row + k * kWidth + at);
    }
  }
}

// --- By width, format and what is asked for ---

template <class Rows>
std::size_t forward_of_width(int width, const TileInput& input, const typename Rows::Element* weights,
                             const TileConstants& constants, int steps, const TraceOut& out) {
  if (width == 64) return forward_of<64, Rows>(input, weights, constants, steps, out);
  return forward_of<32, Rows>(input, weights, constants, steps, out);
}

std::size_t Forward(int width, const TileInput& input, const TileConstants& constants, int steps, const TraceOut& out) {
  if (width == 16) return forward_of<16, FullRows>(input, input.weights, constants, steps, out);
  if (!input.half_weights) return forward_of_width<FullRows>(width, input, input.weights, constants, steps, out);
#if HWY_TARGET <= HWY_AVX3
  if (adds_by_bf16_dot()) return forward_of_width<DottedRows>(width, input, input.half_weights, constants, steps, out);
#endif
  return forward_of_width<ShiftedRows>(width, input, input.half_weights, constants, steps, out);
}

std::size_t ForwardStep(int width, const StepInput& input, const TileConstants& constants, int samples, float* carry,
                        const StepOut& out) {
  if (width == 64) return forward_step_of<64>(input, constants, samples, carry, out);
  if (width == 32) return forward_step_of<32>(input, constants, samples, carry, out);
  return forward_step_of<16>(input, constants, samples, carry, out);
}

void Retrace(int width, const TileInput& input, const OwnInput& own, const TileConstants& c, int steps,
             const std::uint64_t* masks, float* states) {
  if (input.half_weights) {
    if (width == 64) return retrace_of<64, ShiftedRows>(input, input.half_weights, own, c, steps, masks, states);
    return retrace_of<32, ShiftedRows>(input, input.half_weights, own, c, steps, masks, states);
  }
  if (width == 64) return retrace_of<64, FullRows>(input, input.weights, own, c, steps, masks, states);
  if (width == 32) return retrace_of<32, FullRows>(input, input.weights, own, c, steps, masks, states);
  retrace_of<16, FullRows>(input, input.weights, own, c, steps, masks, states);
}

template <int kWidth, bool kThroughReset>
void backward_of_kind(const TileConstants& constants, const TraceIn& trace, const float* spike_gradient,
                      const float* rate_gradient, int steps, const DeltaOut& out, const ConstantGradients* learned) {
  if constexpr (kWidth == 16) {
    if (!learned)
      return backward_of<16, kThroughReset, false>(constants, trace, spike_gradient, rate_gradient, steps, out);
  } else if (!learned) {
    (out.half_rows
         ? backward_of<kWidth, kThroughReset, true>
         : backward_of<kWidth, kThroughReset, false>)(constants, trace, spike_gradient, rate_gradient, steps, out);
    return;
  }
  backward_learned_of<kWidth, kThroughReset>(constants, trace, spike_gradient, rate_gradient, steps, out, *learned);
  if constexpr (kWidth > 16) {
    for (int step = 0; out.half_rows && step < steps; ++step) {
      Lanes row[kWidth / kLanes];
      SPIKELOOM_UNROLL
      for (int i = 0; i < kWidth / kLanes; ++i) row[i] = load(out.rows + step * out.stride + i * kLanes);
      store_pairs(row, out.half_rows + step * (kWidth / 2));
    }
  }
}

template <int kWidth>
void backward_of_width(const TileConstants& constants, const TraceIn& trace, const float* spike_gradient,
                       const float* rate_gradient, int steps, const DeltaOut& out, const ConstantGradients* learned) {
  (trace.membranes ? backward_of_kind<kWidth, true> : backward_of_kind<kWidth, false>)(constants, trace, spike_gradient,
                                                                                       rate_gradient, steps, out,
                                                                                       learned);
}

void Backward(int width, const TileConstants& constants, const TraceIn& trace, const float* spike_gradient,
              const float* rate_gradient, int steps, const DeltaOut& out, const ConstantGradients* learned) {
  const auto of_width = width == 64   ? backward_of_width<64>
                        : width == 32 ? backward_of_width<32>
                                      : backward_of_width<16>;
  of_width(constants, trace, spike_gradient, rate_gradient, steps, out, learned);
}

void BackwardStep(int width, const TileConstants& c, const StepEntries& entries, const float* spike_gradient,
                  const float* rate_gradient, int samples, float* later, float* rows, std::ptrdiff_t stride,
                  std::uint64_t* masks, float* drives) {
  const auto run = [&](auto plain, auto through_reset) HWY_ATTR {
    (entries.membranes ? through_reset : plain)(c, entries, spike_gradient, rate_gradient, samples, later, rows, stride,
                                                masks, drives);
  };
  if (width == 64) return run(backward_step_of<64, false>, backward_step_of<64, true>);
  if (width == 32) return run(backward_step_of<32, false>, backward_step_of<32, true>);
  run(backward_step_of<16, false>, backward_step_of<16, true>);
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "network/scalar_models.hpp"

namespace spikeloom::kernels {
namespace {

HWY_EXPORT(Forward);
HWY_EXPORT(ForwardStep);
HWY_EXPORT(Retrace);
HWY_EXPORT(Backward);
HWY_EXPORT(BackwardStep);

std::size_t forward(int width, const TileInput& input, const TileConstants& constants, int steps, const TraceOut& out) {
  return HWY_DYNAMIC_DISPATCH(Forward)(width, input, constants, steps, out);
}

std::size_t forward_step(int width, const StepInput& input, const TileConstants& constants, int samples, float* carry,
                         const StepOut& out) {
  return HWY_DYNAMIC_DISPATCH(ForwardStep)(width, input, constants, samples, carry, out);
}

void retrace(int width, const TileInput& input, const OwnInput& own, const TileConstants& constants, int steps,
             const std::uint64_t* spike_masks, float* states) {
  HWY_DYNAMIC_DISPATCH(Retrace)(width, input, own, constants, steps, spike_masks, states);
}

void backward(int width, const TileConstants& constants, const TraceIn& trace, const float* spike_gradient,
              const float* rate_gradient, int steps, const DeltaOut& out, const ConstantGradients* learned) {
  HWY_DYNAMIC_DISPATCH(Backward)(width, constants, trace, spike_gradient, rate_gradient, steps, out, learned);
}

void backward_step(int width, const TileConstants& constants, const StepEntries& entries, const float* spike_gradient,
                   const float* rate_gradient, int samples, float* later, float* rows, std::ptrdiff_t stride,
                   std::uint64_t* spike_masks, float* drives) {
  HWY_DYNAMIC_DISPATCH(BackwardStep)
  (width, constants, entries, spike_gradient, rate_gradient, samples, later, rows, stride, spike_masks, drives);
}

}  // namespace

extern const SpikingKernels SPIKELOOM_KERNELS{
    scalar::SPIKELOOM_MODEL::kStates, forward, forward_step, retrace, backward, backward_step};

}  // namespace spikeloom::kernels
#endif
