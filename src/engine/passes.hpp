// The passes over one layer that Engine strings together. Each is one parallel region or a few; every region's end is
// the barrier between them.
#pragma once

#include <deque>
#include <vector>

#include "core/aligned_buffer.hpp"
#include "core/worker_team.hpp"
#include "engine/engine.hpp"
#include "engine/input_sources.hpp"
#include "engine/layer_state.hpp"
#include "engine/loop.hpp"
#include "engine/spike_lists.hpp"
#include "engine/step_exchange.hpp"

namespace spikeloom {

/// What a worker needs to take samples through the steps of one layer of a loop.
struct StepScratch {
  AlignedBuffer<float> state;     // (own tiles, samples, states, width): handed on from step to step, or its gradient
  AlignedBuffer<float> currents;  // (own tiles, some steps, samples, width): W s of what comes from outside the loop
  AlignedBuffer<float> joined;    // (samples, width): with what comes from other layers of it
  AlignedBuffer<std::uint8_t> codes;    // samples * width: the entries of a step
  AlignedBuffer<float> membranes;       // likewise
  AlignedBuffer<float> spike_gradient;  // samples * width
  std::vector<AddedParts> added;        // what comes back to the layer at a step, from each that it sends to
  SpikeLists lists;                     // spikes, or going back the active set, of all tiles at step `listed`
  SpikeLists sent;                      // what of these spikes reaches other layers, where it is not all of them
  SpikeLists nothing;                   // empty lists
  int listed = 0;
  int sent_listed = 0;
  std::vector<std::size_t> first_entry;   // (own tiles, samples): where the step's entries start in the tile's lists
  std::vector<std::size_t> first_active;  // likewise, of active entries
};

/// Buffers that a worker reuses from batch to batch; nobody else touches them inside a region.
struct alignas(kCacheLine) WorkerScratch {
  AlignedBuffer<std::uint8_t> codes;           // steps * width
  AlignedBuffer<float> membranes;              // steps * width: of a sample's entries
  AlignedBuffer<float> rows;                   // (rows of a range, width): delta
  AlignedBuffer<kernels::Bf16Pair> half_rows;  // (rows of a range, width / 2): delta in bf16
  AlignedBuffer<float> drives;                 // (states, steps, width), see kernels::DeltaOut
  AlignedBuffer<float> states;                 // (steps, states + 1, width): of a sample traced once more
  AlignedBuffer<float> sample_sums;            // LayerState::sample_sums
  AlignedBuffer<std::uint64_t> spike_masks;    // steps
  AlignedBuffer<float> gradient;            // (inputs, width): of the tile at hand, where it need not outlive its turn
  AlignedBuffer<float> dense_input;         // (rows, stride) of a leaky integrator below a linear layer
  AlignedBuffer<float> currents;            // (rows, width) or (rows, block) of W s made by a product
  AlignedBuffer<float> outputs;             // (steps, stride) of the last layer
  AlignedBuffer<float> output_gradient;     // likewise
  AlignedBuffer<float> partials;            // (tiles, events of a sample)
  AlignedBuffer<float> returned;            // of a sample's active entries: dLoss/ds, where not all of them go out
  AlignedBuffer<std::uint32_t> entry_rows;  // of a tile's entries of a sample
  std::vector<kernels::TileList> tile_lists;  // one per tile, as the next
  std::vector<float*> cursors;
  std::vector<std::size_t> places;          // one per sample of a cohort
  AlignedBuffer<float> recurrent_gradient;  // (size, width): as gradient
  std::vector<StepScratch> steps;           // of each layer of a loop
  std::vector<StepExchange> exchanges;      // of a loop, where the worker is alone with its samples
  double update_seconds = 0.0;
};

/// Entries of a tile as a recurrent layer makes them: step by step, in each sample by sample.
struct StagedEntries {
  std::vector<std::uint8_t> codes;
  std::vector<float> membranes;
};

/// Buffers of one layer that all workers fill together: of the layer at hand, or of each layer of a loop.
struct LayerScratch {
  std::vector<TransposedEvents> own_transposed;  // of a recurrent layer's own spikes, one step later
  std::vector<StagedEntries> staged;             // (cohorts, tiles)
  AlignedBuffer<float> delta;  // k delta of a group: of a layer of a loop (tiles, rows, width), dense (rows, stride)
  // Of the dense mode:
  AlignedBuffer<float> weights;   // (inputs, stride)
  AlignedBuffer<float> currents;  // (rows of a group, stride): W s of a layer of a loop
  AlignedBuffer<float> gradient;  // (inputs, stride)
};

/// Buffers of a pass that all workers fill together, kept from batch to batch.
struct SharedScratch {
  /// Those of the layer of this number in a loop. Not while workers run.
  LayerScratch& layer(int number = 0) {
    while (layers.size() <= static_cast<std::size_t>(number)) layers.emplace_back();
    return layers[number];
  }
  std::deque<LayerScratch> layers = std::deque<LayerScratch>(1);
  std::vector<TransposedEvents> transposed;
  std::vector<std::uint32_t> all_rows;  // 0, 1, 2, ...: the events of a bias
  std::vector<StepExchange> exchanges;  // of a loop, where all workers advance together
  AlignedBuffer<float> partials;  // (tiles, events of a group): each tile's part of the gradient of the layers below
  AlignedBuffer<float> spikes;    // (rows of a group, inputs), of the dense mode
  // Of tiles that several workers share, for the layer at hand:
  AlignedBuffer<kernels::Bf16Pair> half_delta;  // (shared tiles, rows of a group, width / 2); in fp32 its `delta`
  AlignedBuffer<float> sample_sums;             // (shared tiles, samples of a group, LayerState::sample_sums)
  AlignedBuffer<float> shared_gradient;         // (shared tiles, inputs, width)
};

/// What the passes share.
struct PassContext {
  int samples = 0;
  int steps = 0;
  WorkerTeam* team = nullptr;
  std::vector<WorkerScratch>* scratch = nullptr;
  SharedScratch* shared = nullptr;
  const Plan* plan = nullptr;
  int first_step = 0;       // of the chunk at hand in the recording; `steps` are the chunk's
  int recording_steps = 0;  // of all chunks

  std::size_t rows() const { return static_cast<std::size_t>(samples) * steps; }
  StepRange chunk() const { return {first_step, first_step + steps}; }
};

/// The samples of a group that a worker's share of a tile is about.
inline SampleRange samples_of(const TileShare& share, SampleRange group) {
  return {group.first + share.begin(group.size()), group.first + share.end(group.size())};
}

/// When a tile's gradient is complete: applied at once, or kept for a second pass.
struct UpdateRule {
  ParameterUpdate* update = nullptr;  // null: keep
  int layer = 0;                      // for BlockId
};

/// Where a tile's gradients are gathered.
struct TileGradient {
  float* weight = nullptr;
  float* recurrent_weight = nullptr;  // null unless the layer is recurrent
};

/// Rows (sample, step) of all tiles, counted from the first of a group of samples.
struct TileRows {
  float* data = nullptr;
  std::ptrdiff_t tile_stride = 0;
  std::ptrdiff_t row_stride = 0;
  float* at(int tile, std::size_t row) const {
    return data + tile * tile_stride + static_cast<std::ptrdiff_t>(row) * row_stride;
  }
};

// --- forward.cpp ---

/// Forward pass of a feed-forward spiking layer from spike lists: fills the tiles' traces, then the layer's lists.
void forward_sparse(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context);
/// Concatenates the tiles' spikes of each row into the layer's list.
void merge_spikes(LayerState& layer, const PassContext& context);
/// The same of the active entries: made when the backward pass needs it rather than kept.
void merge_active(const LayerState& layer, const PassContext& context, SpikeLists& out);
/// Appends one sample to the tile's `trace`, reading its input from `input` (lists or currents). `carry` as in
/// TraceOut.
void forward_sample(const LayerState& layer, int tile, const kernels::TileInput& input, Listing listing, int steps,
                    WorkerScratch& scratch, TileTrace& trace, float* carry = nullptr);
/// Appends a sample's entries to the tile's `trace`; their counts are there already.
void append_entries(const LayerState& layer, int tile, Listing listing, const std::uint8_t* codes,
                    const float* membranes, std::size_t entries, TileTrace& trace);

// --- backward.cpp ---

/// What stands above a layer when its backward pass starts.
struct GradientSource {
  // A spiking layer reads dLoss/ds from its tiles' traces. A leaky integrator below a linear layer reads the linear
  // layer's rows:
  LayerState* linear = nullptr;
  const float* linear_rows = nullptr;               // (samples * steps, linear->stride()): k delta of the linear layer
  const float* linear_weights_by_output = nullptr;  // (tiles of this layer, outputs of the linear layer, width)
};

/// Backward pass of a feed-forward layer fed by spikes: delta recursion, gradient of the layers below at their active
/// sets (given to `below`, if any), weight gradient, and the update where it need not wait.
void backward_sparse(LayerState& layer, const SpikeRows& input, InputSources* below, const GradientSource& source,
                     const UpdateRule& rule, const PassContext& context);
/// Delta recursion of one sample of a spiking tile: writes k delta[t] to rows[t * stride + column], and to `sums` what
/// the sample adds to the gradients of the tile's neurons (LayerState::sample_sums). With `half_rows` (steps, width /
/// 2) deltas go there as bf16, and `rows` is scratch. `input` is what the layer received.
void delta_of_sample(LayerState& layer, int tile, int sample, const SpikeRows& input, float* rows,
                     std::ptrdiff_t stride, const PassContext& context, WorkerScratch& scratch,
                     kernels::Bf16Pair* half_rows, float* sums);
/// The same, and adds the sums.
void add_delta_of_sample(LayerState& layer, int tile, int sample, const SpikeRows& input, float* rows,
                         std::ptrdiff_t stride, const PassContext& context, WorkerScratch& scratch,
                         kernels::Bf16Pair* half_rows = nullptr);
/// Makes room for dLoss/ds of the layer's active entries.
void prepare_spike_gradient(LayerState& layer);
/// Writes the gradients of one sample's entries of below.sent_active() to the traces' own lists, or adds them there.
void distribute_to_tiles(LayerState& below, int sample, int steps, const float* gradient, WorkerScratch& scratch,
                         bool adds = false);
/// Hands a tile's weights and biases to the update.
void update_tile(LayerState& layer, int tile, const TileGradient& gradient, const UpdateRule& rule,
                 WorkerScratch& scratch);
/// What sums over spikes become where each counts `value`.
void scale_by(float value, float* gradient, std::size_t count);
/// The gradients of a tile that outlive its turn.
TileGradient kept_gradients(LayerState& layer, int tile);

/// k delta of a group of samples of a layer of a loop, by tile, and the layer's buffers.
struct LoopDelta {
  TileRows rows;
  LayerScratch& scratch;
};
/// A group of samples of a layer of a loop: gradients of the layers below and of the weights. `keep`: gradients outlive
/// the group.
void backward_sparse_group(LayerState& layer, const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                           const PassContext& context, SampleRange group, bool keep, const LoopDelta& delta);
/// How many samples from `first` on have partial input gradients (one float for an event and a tile) that fit the
/// budget; at least one.
int samples_within_budget(const LayerState& layer, const InputSources* below, int first, const PassContext& context);

// --- recurrent_forward.cpp ---

/// What one layer of a loop receives from outside, and how its pass goes.
struct LoopInput {
  SpikeRows spikes;
  Listing listing = Listing::active;
  bool dense = false;  // products make W s
};
/// Forward pass of the layers of a loop, whose `inputs` are those of its members.
void forward_loop(const Loop& loop, std::span<const LoopInput> inputs, const PassContext& context);

// --- recurrent_backward.cpp ---

/// What the backward pass of one layer of a loop needs. `spikes` are all that it received, those of the loop included.
struct LoopBackward {
  SpikeRows spikes;
  InputSources* below = nullptr;  // layers outside of the loop
  UpdateRule rule;
  bool dense = false;
};
/// Backward pass of the layers of a loop, whose active sets are listed and whose traces hold what comes from outside of
/// the loop: as backward_sparse.
void backward_loop(const Loop& loop, std::span<const LoopBackward> members, const PassContext& context);
/// Adds k delta of a range of samples, given as rows of one tile, to the gradients of the recurrent weights (if any)
/// and the biases, and those of learned constants. `own` are the layer's own spikes in that range, one step later.
void add_own_gradients(LayerState& layer, int tile, const SpikeRows& input, SampleRange samples,
                       const TransposedEvents* own, const PassContext& context, WorkerScratch& scratch,
                       const float* rows, std::ptrdiff_t stride, float* recurrent_gradient);

// --- dense.cpp ---

/// Of a feed-forward layer.
void forward_dense(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context);
void backward_dense(LayerState& layer, const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                    const PassContext& context);
/// Samples whose products are made at a time.
int dense_group_size(const PassContext& context);
/// Of a layer of a loop: W s of a group of samples, without what comes from the loop, (rows, stride) in
/// `scratch.currents`.
void gather_weights(const LayerState& layer, const PassContext& context, AlignedBuffer<float>& matrix);
TileRows dense_currents(const LoopMember& member, const SpikeRows& input, SampleRange group, const PassContext& context,
                        LayerScratch& scratch);

/// One layer's backward pass in products, a group of samples after the other.
class DenseBackward {
 public:
  /// `number`: that of the layer in its loop.
  DenseBackward(LayerState& layer, const SpikeRows& input, InputSources* below, const UpdateRule& rule,
                const PassContext& context, int number = 0);
  /// `delta`: k delta of the group, (rows, stride), of a layer of a loop; null: it is made here.
  void run(SampleRange group, const TileRows* delta);
  /// The update, after all groups.
  void finish();

 private:
  void hand_down(SampleRange group, const SpikeLists& sent, const float* picked);

  LayerState& layer_;
  const SpikeRows& input_;
  InputSources* below_;
  const UpdateRule& rule_;
  const PassContext& context_;
  LayerScratch& scratch_;
};

// --- count_stage.cpp ---

/// The same part of a network whose last layer spikes: the loss looks at its spike counts.
class CountStage {
 public:
  explicit CountStage(LayerState& last) : last_(&last) {}

  /// Adds the spikes of a chunk.
  void forward(const PassContext& context);
  /// The loss, after the last chunk; with `train`, its gradient, too.
  std::vector<SampleResult> evaluate(const std::vector<int>& labels, const ReadoutLoss& loss, bool train,
                                     const PassContext& context);
  /// Hands it to the layer's active entries in a chunk.
  void backward(const PassContext& context);

 private:
  LayerState* last_;
  std::vector<std::uint32_t> counts_;  // (samples, size)
  std::vector<float> gradient_;        // likewise
};

// --- output_stage.cpp ---

/// The last layer (and a leaky integrator below a linear last layer) with the loss, sample by sample in parallel. The
/// loss looks at the outputs of a whole recording, which are kept; all else is done chunk by chunk.
class OutputStage {
 public:
  /// `hidden` is the leaky integrator below a linear last layer, or null.
  OutputStage(LayerState& last, LayerState* hidden) : last_(&last), hidden_(hidden) {}

  /// Membranes of a chunk; the chunks of a recording in their order.
  void forward(const SpikeRows& input, const PassContext& context);
  /// The loss, after the last chunk. With `train` its gradient takes the membranes' place.
  std::vector<SampleResult> evaluate(const std::vector<int>& labels, const ReadoutLoss& loss, bool train,
                                     const PassContext& context);
  /// The delta recursion of the last layer in a chunk, the gradient of the spiking layers `below` (null: there are
  /// none), the last layer's weight gradient and its update.
  void backward(const SpikeRows& input, InputSources* below, const UpdateRule& rule, const PassContext& context);

  /// Membranes of the last layer after forward() of a recording that is one chunk: (samples * steps, stride).
  const float* membranes() const { return trace_.data(); }
  std::size_t saved_bytes(const PassContext& context) const {
    return static_cast<std::size_t>(context.samples) * context.recording_steps * last_->stride() * sizeof(float);
  }

 private:
  void forward_sample(const SpikeRows& input, int sample, const PassContext& context, WorkerScratch& scratch);
  /// From the first step of a sample in a chunk on: (steps, stride).
  float* rows_of(StepRange chunk, int sample, const PassContext& context);
  void give_gradient(const float* rows, const InputSources& below, int sample, const PassContext& context,
                     WorkerScratch& scratch) const;
  void backward_hidden(const SpikeRows& input, InputSources* below, const UpdateRule& rule, const PassContext& context);
  void weight_gradients(const SpikeRows& input, const UpdateRule& rule, const PassContext& context);

  LayerState* last_;
  LayerState* hidden_;
  std::vector<StepRange> chunks_;        // of the recordings at hand
  AlignedBuffer<float> trace_;           // chunk after chunk (samples, steps, stride): membranes, then dLoss/du, then
                                         // k delta
  AlignedBuffer<float> bias_gradients_;  // (samples, stride)
  AlignedBuffer<float> weights_by_output_;  // of a linear last layer, see GradientSource
};

}  // namespace spikeloom
