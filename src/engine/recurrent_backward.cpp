// Backward pass of a loop: the delta recursion, step by step in one of two schedules (cohorts.hpp), then each layer's
// gradients. A neuron of the active set gets, beside dLoss/ds from outside of the loop, for every layer of it that it
// sends spikes to (through weights W, or R to itself), which take `lag` steps,
//
//   dS_i[t] += (k delta[t + lag]) . W[i,:]
//
// in parts, one from each tile. The parts of one receiver are added in tile order, then to what was there before: the
// layer itself first, then receivers in the order of the network.
#include <algorithm>
#include <deque>

#include "engine/cohorts.hpp"

namespace spikeloom {
namespace {

/// The most events that a step of the samples has.
std::size_t largest_step(const SpikeLists& lists, SampleRange samples, int steps) {
  std::size_t largest = 0;
  for (int step = 0; step < steps; ++step) {
    std::size_t events = 0;
    for (int sample = samples.first; sample < samples.last; ++sample) {
      const std::size_t row = static_cast<std::size_t>(sample) * steps + step;
      events += lists.offsets[row + 1] - lists.offsets[row];
    }
    largest = std::max(largest, events);
  }
  return largest;
}

/// One worker's way back through the steps with one cohort.
class DeltaWalk {
 public:
  DeltaWalk(const Loop& loop, SampleRange group, std::span<const TileRows> rows, const PassContext& context,
            const Cohort& cohort)
      : cohort_(cohort),
        first_row_(static_cast<std::size_t>(cohort.samples.first - group.first) * context.steps),
        steps_(context.steps),
        samples_(cohort.size()) {
    for (int m = 0; m < loop.size(); ++m) {
      turns_.push_back({.layer = loop.layer(m),
                        .member = loop.member(m),
                        .rows = rows[m],
                        .tiles = cohort.tiles[m],
                        .scratch = cohort.scratch->steps[m],
                        .width = loop.layer(m).width()});
      start(turns_.back());
    }
  }

  void run() {
    for (int step = steps_ - 1; step >= 0; --step) {
      for (std::size_t m = turns_.size(); m-- > 0;) {
        Turn& turn = turns_[m];
        add_parts(turn, step);
        for (std::size_t i = 0; i < turn.tiles.size(); ++i) retreat(turn, i, step);
        if (step == 0 && m == 0) return;
        for (const LoopLink& link : turn.member.links) send_back(turn, link, step);
        if (!cohort_.meet()) return;
      }
    }
  }

 private:
  /// What came back from one of the loop's layers, by the layer's list of the step.
  struct Returned {
    const float* sums;
    bool passed;  // only of what dropout let go out
  };
  /// One layer on its way.
  struct Turn {
    LayerState& layer;
    const LoopMember& member;
    const TileRows& rows;
    const std::vector<int>& tiles;
    StepScratch& scratch;
    int width;
    std::vector<Returned> returned = {};  // at the step at hand
  };

  StepExchange& exchange(const LoopLink& link) { return (*cohort_.exchanges)[link.exchange]; }

  void start(Turn& turn) {
    const LayerState& layer = turn.layer;
    StepScratch& own = turn.scratch;
    const std::size_t cells = turn.tiles.size() * samples_, floats = cells * layer.states() * layer.width();
    own.state.reserve_discard(floats);
    std::fill_n(own.state.data(), floats, 0.0f);
    own.spike_gradient.reserve_discard(samples_ * layer.width());
    own.lists.offsets.assign(samples_ + 1, 0);
    own.lists.ids.clear();
    own.listed = steps_;
    own.first_entry.resize(cells);
    own.first_active.resize(cells);
    for (std::size_t i = 0; i < turn.tiles.size(); ++i) {
      const TileTrace& trace = layer.traces[turn.tiles[i]];
      for (std::size_t s = 0; s < samples_; ++s) {
        own.first_entry[i * samples_ + s] = trace.entry_start[cohort_.samples.first + s + 1];
        own.first_active[i * samples_ + s] = trace.active_start[cohort_.samples.first + s + 1];
      }
    }
    cohort_.scratch->drives.reserve_discard(layer.states() * samples_ * layer.width());
    cohort_.scratch->spike_masks.reserve_discard(samples_);
  }

  /// delta of a step of the i-th own tile.
  void retreat(Turn& turn, std::size_t i, int step) {
    const int tile = turn.tiles[i];
    LayerState& layer = turn.layer;
    StepScratch& own = turn.scratch;
    TileTrace& trace = layer.traces[tile];
    const std::uint8_t* counts = trace.counts.data() + static_cast<std::size_t>(cohort_.samples.first) * steps_ + step;
    std::size_t* first_entry = own.first_entry.data() + i * samples_;
    float* gradient = own.spike_gradient.data();
    for (std::size_t s = 0; s < samples_; ++s) {
      std::size_t active = 0;
      for (int left = counts[s * steps_]; left > 0; --left)
        active += (trace.codes[--first_entry[s]] & kernels::kActive) != 0;
      if (active == 0) continue;
      const std::size_t first_active = own.first_active[i * samples_ + s] -= active;
      float* from_above = trace.spike_gradient.data() + first_active;
      float* gathered = gather(turn, tile, s, step, from_above, active, gradient);
      // The pass that finds the gradients of constants needs all of it, too.
      if (layer.learns_constants()) std::copy(gradient, gathered, from_above);
      gradient = gathered;
    }
    const kernels::StepEntries entries{first_entry,
                                       counts,
                                       steps_,
                                       trace.codes.data(),
                                       trace.derivatives.data(),
                                       layer.spec().reset_gradient ? trace.membranes.data() : nullptr};
    layer.kernels().backward_step(layer.width(), layer.constants(tile), entries, own.spike_gradient.data(),
                                  layer.rate_gradient(tile), static_cast<int>(samples_),
                                  own.state.data() + i * samples_ * layer.states() * layer.width(),
                                  turn.rows.at(tile, first_row_ + step), steps_ * turn.rows.row_stride,
                                  cohort_.scratch->spike_masks.data(), cohort_.scratch->drives.data());
  }

  /// Adds up what comes back to a layer from the loop at a step, for all of its tiles.
  void add_parts(Turn& turn, int step) {
    turn.returned.clear();
    for (std::size_t r = 0; r < turn.member.receivers.size(); ++r) {
      const LoopReceiver& receiver = turn.member.receivers[r];
      const Turn& to = turns_[receiver.member];
      const LoopLink& link = to.member.links[receiver.link];
      if (step + link.lag >= steps_) continue;
      std::vector<AddedParts>& added = turn.scratch.added;
      if (added.size() <= r) added.resize(r + 1);
      added[r].add(exchange(link), step, to.layer.tiles(), active_of(turn, step).ids.size());
      turn.returned.push_back({added[r].data(), !link.own && turn.layer.outgoing.drops()});
    }
  }

  /// dLoss/ds of a sample's active entries in a tile, from above and from the loop; returns where the next go.
  float* gather(Turn& turn, int tile, std::size_t s, int step, const float* from_above, std::size_t active,
                float* gradient) {
    std::copy_n(from_above, active, gradient);
    if (turn.returned.empty()) return gradient + active;
    const SpikeLists& list = active_of(turn, step);
    const std::size_t first = first_event(list, s, static_cast<std::uint32_t>(tile * turn.width));
    for (const Returned& returned : turn.returned) {
      for (std::size_t a = 0; a < active; ++a) {
        gradient[a] += returned.passed ? passed(turn, s, step, list.ids[first + a], returned.sums[first + a])
                                       : returned.sums[first + a];
      }
    }
    return gradient + active;
  }

  /// Of what comes back of an entry that dropout may have left out.
  float passed(const Turn& turn, std::size_t s, int step, std::uint32_t id, float sum) const {
    const Outgoing& outgoing = turn.layer.outgoing;
    const int sample = cohort_.samples.first + static_cast<int>(s);
    return outgoing.leaves_out(sample, step, id) ? 0.0f : outgoing.value() * sum;
  }

  /// The own tiles' parts of what goes back to a layer of the loop.
  void send_back(const Turn& turn, const LoopLink& link, int step) {
    const int sent = step - link.lag;
    if (sent < 0) return;
    const SpikeLists& active = active_of(turns_[link.source], sent);
    for (const int tile : turn.tiles) {
      kernels::input_gradient(turn.width, turn.member.weights_of(link, tile), turn.rows.at(tile, first_row_ + step),
                              steps_ * turn.rows.row_stride, samples_, active.offsets.data(), active.ids.data(),
                              exchange(link).partials(tile, sent));
    }
  }

  /// The active set of a layer at a step, sample by sample.
  const SpikeLists& active_of(Turn& turn, int step) {
    SpikeLists& lists = turn.scratch.lists;
    if (turn.scratch.listed == step) return lists;
    turn.scratch.listed = step;
    const SpikeLists& active = turn.layer.active;
    lists.ids.clear();
    for (std::size_t s = 0; s < samples_; ++s) {
      const std::uint32_t* offsets = active.offsets.data() + (cohort_.samples.first + s) * steps_ + step;
      lists.ids.insert(lists.ids.end(), active.ids.begin() + offsets[0], active.ids.begin() + offsets[1]);
      lists.offsets[s + 1] = static_cast<std::uint32_t>(lists.ids.size());
    }
    return lists;
  }

  const Cohort& cohort_;
  std::vector<Turn> turns_;  // of each layer of the loop
  std::size_t first_row_;    // of the cohort in `rows`
  int steps_;
  std::size_t samples_;
};

/// k delta of a group of samples, of every layer of the loop.
std::vector<TileRows> delta_of_group(const Loop& loop, std::span<const LoopBackward> members, SampleRange group,
                                     const PassContext& context) {
  const std::size_t group_rows = static_cast<std::size_t>(group.size()) * context.steps;
  std::vector<std::uint32_t>& all_rows = context.shared->all_rows;
  while (all_rows.size() < group_rows) all_rows.push_back(static_cast<std::uint32_t>(all_rows.size()));
  std::vector<TileRows> rows;
  for (int m = 0; m < loop.size(); ++m) {
    const LayerState& layer = loop.layer(m);
    AlignedBuffer<float>& delta = context.shared->layer(m).delta;
    delta.reserve_discard(group_rows * layer.stride());
    rows.push_back(members[m].dense ? TileRows{delta.data(), layer.width(), layer.stride()}
                                    : TileRows{delta.data(), static_cast<std::ptrdiff_t>(group_rows * layer.width()),
                                               layer.width()});
  }
  for_each_cohort(
      loop, group, context,
      [&](SampleRange samples, std::vector<StepExchange>& exchanges) {
        for (const LoopMember& member : loop.members()) {
          for (const LoopLink& link : member.links) {
            exchanges[link.exchange].reserve_partials(
                member.layer->tiles(), largest_step(loop.layer(link.source).active, samples, context.steps));
          }
        }
      },
      [&](const Cohort& cohort) { DeltaWalk(loop, group, rows, context, cohort).run(); });
  return rows;
}

/// Samples from `first` on that are worked on together: their deltas and partial sums fit the budgets.
int group_size(const Loop& loop, std::span<const LoopBackward> members, int first, const PassContext& context) {
  std::size_t listed_stride = 0;
  for (int m = 0; m < loop.size(); ++m) listed_stride += members[m].dense ? 0 : loop.layer(m).stride();
  int size = context.samples - first;
  if (listed_stride > 0) {
    const std::size_t sample_bytes = sizeof(float) * context.steps * listed_stride;
    size = std::min(size, static_cast<int>(std::clamp<std::size_t>(context.plan->recurrent_delta_bytes / sample_bytes,
                                                                   1, context.plan->recurrent_samples)));
  }
  for (int m = 0; m < loop.size(); ++m) {
    if (members[m].dense) {
      size = std::min(size, dense_group_size(context));
    } else {
      size = std::min(size, samples_within_budget(loop.layer(m), members[m].below, first, context));
    }
  }
  return size;
}

}  // namespace

void backward_loop(const Loop& loop, std::span<const LoopBackward> members, const PassContext& context) {
  std::vector<SampleRange> groups;
  for (int first = 0; first < context.samples; first = groups.back().last)
    groups.push_back({first, first + group_size(loop, members, first, context)});
  const bool keep = groups.size() > 1;
  std::deque<DenseBackward> dense;  // of the layers in dense mode, in order
  for (int m = 0; m < loop.size(); ++m) {
    const LoopBackward& member = members[m];
    if (member.dense) {
      dense.emplace_back(loop.layer(m), member.spikes, member.below, member.rule, context, m);
      continue;
    }
    if (keep || !member.rule.update) kept_gradients(loop.layer(m), 0);  // allocated before the workers need it
    if (member.below) member.below->prepare_gradient();
  }
  for (const SampleRange& group : groups) {
    const std::vector<TileRows> rows = delta_of_group(loop, members, group, context);
    auto of_dense = dense.rbegin();
    for (int m = loop.size() - 1; m >= 0; --m) {
      const LoopBackward& member = members[m];
      if (member.dense) {
        (of_dense++)->run(group, &rows[m]);
      } else {
        backward_sparse_group(loop.layer(m), member.spikes, member.below, member.rule, context, group,
                              keep || !member.rule.update, {rows[m], context.shared->layer(m)});
      }
    }
  }
  for (DenseBackward& pass : dense) pass.finish();
}

void add_own_gradients(LayerState& layer, int tile, const SpikeRows& input, SampleRange samples,
                       const TransposedEvents* own, const PassContext& context, WorkerScratch& scratch,
                       const float* rows, std::ptrdiff_t stride, float* recurrent_gradient) {
  if (own) {
    const auto state = samples.first == 0 ? kernels::Gradient::start : kernels::Gradient::add;
    kernels::weight_gradient(layer.width(), own->starts.data(), own->event_rows.data(), 0,
                             static_cast<std::uint32_t>(layer.size()), rows, stride, state, recurrent_gradient);
  }
  if (layer.learns_constants()) {
    // With dLoss/ds known in full, the tile no longer needs the others: its recursion once more gives both.
    scratch.rows.reserve_discard(static_cast<std::size_t>(context.steps) * layer.width());
    for (int sample = samples.first; sample < samples.last; ++sample)
      add_delta_of_sample(layer, tile, sample, input, scratch.rows.data(), layer.width(), context, scratch);
    return;
  }
  // To a bias every row is an event.
  const auto count = static_cast<std::uint32_t>(samples.size() * context.steps);
  const std::uint32_t starts[] = {0, count};
  kernels::weight_gradient(layer.width(), starts, context.shared->all_rows.data(), 0, 1, rows, stride,
                           kernels::Gradient::add, layer.bias_gradient(tile));
}

}  // namespace spikeloom
