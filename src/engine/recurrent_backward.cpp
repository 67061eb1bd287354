// Backward pass of a recurrent layer: the delta recursion, step by step in one of two schedules (cohorts.hpp), and the
// gradients of what is the layer's own. A neuron of the active set gets, beside dLoss/ds from above,
//
//   dS_i[t] += (k delta[t+1]) . R[i,:]
//
// in parts, one from each tile, added in tile order: the parts first, then to what comes from above.
#include <algorithm>

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
  DeltaWalk(LayerState& layer, SampleRange group, const TileRows& rows, const PassContext& context,
            const Cohort& cohort)
      : layer_(layer),
        cohort_(cohort),
        rows_(rows),
        first_row_(static_cast<std::size_t>(cohort.samples.first - group.first) * context.steps),
        step_(cohort.scratch->step),
        steps_(context.steps),
        width_(layer.width()),
        samples_(cohort.size()) {
    const std::size_t cells = cohort.tiles.size() * samples_;
    step_.state.reserve_discard(cells * layer.states() * width_);
    std::fill_n(step_.state.data(), cells * layer.states() * width_, 0.0f);
    step_.spike_gradient.reserve_discard(samples_ * width_);
    step_.lists.offsets.assign(samples_ + 1, 0);
    step_.lists.ids.clear();
    step_.first_entry.resize(cells);
    step_.first_active.resize(cells);
    for (std::size_t i = 0; i < cohort.tiles.size(); ++i) {
      const TileTrace& trace = layer.traces[cohort.tiles[i]];
      for (std::size_t s = 0; s < samples_; ++s) {
        step_.first_entry[i * samples_ + s] = trace.entry_start[cohort.samples.first + s + 1];
        step_.first_active[i * samples_ + s] = trace.active_start[cohort.samples.first + s + 1];
      }
    }
    cohort.scratch->drives.reserve_discard(layer.states() * samples_ * width_);
    cohort.scratch->spike_masks.reserve_discard(samples_);
  }

  void run() {
    for (int step = steps_ - 1; step >= 0; --step) {
      for (std::size_t i = 0; i < cohort_.tiles.size(); ++i) retreat(i, step);
      if (step == 0) return;
      list_active(step - 1);
      for (const int tile : cohort_.tiles) {
        kernels::input_gradient(width_, layer_.recurrent_weights(tile), rows_.at(tile, first_row_ + step),
                                steps_ * rows_.row_stride, samples_, step_.lists.offsets.data(), step_.lists.ids.data(),
                                cohort_.exchange->partials(tile, step - 1));
      }
      if (!cohort_.meet()) return;
    }
  }

 private:
  /// delta of a step of the i-th own tile.
  void retreat(std::size_t i, int step) {
    const int tile = cohort_.tiles[i];
    TileTrace& trace = layer_.traces[tile];
    const std::uint8_t* counts = trace.counts.data() + static_cast<std::size_t>(cohort_.samples.first) * steps_ + step;
    std::size_t* first_entry = step_.first_entry.data() + i * samples_;
    float* gradient = step_.spike_gradient.data();
    for (std::size_t s = 0; s < samples_; ++s) {
      std::size_t active = 0;
      for (int left = counts[s * steps_]; left > 0; --left)
        active += (trace.codes[--first_entry[s]] & kernels::kActive) != 0;
      if (active == 0) continue;
      const std::size_t first_active = step_.first_active[i * samples_ + s] -= active;
      float* from_above = trace.spike_gradient.data() + first_active;
      float* gathered = gather(tile, s, step, from_above, active, gradient);
      // The pass that finds the gradients of constants needs all of it, too.
      if (layer_.learns_constants()) std::copy(gradient, gathered, from_above);
      gradient = gathered;
    }
    const kernels::StepEntries entries{first_entry,
                                       counts,
                                       steps_,
                                       trace.codes.data(),
                                       trace.derivatives.data(),
                                       layer_.spec().reset_gradient ? trace.membranes.data() : nullptr};
    layer_.kernels().backward_step(width_, layer_.constants(tile), entries, step_.spike_gradient.data(),
                                   layer_.rate_gradient(tile), static_cast<int>(samples_),
                                   step_.state.data() + i * samples_ * layer_.states() * width_,
                                   rows_.at(tile, first_row_ + step), steps_ * rows_.row_stride,
                                   cohort_.scratch->spike_masks.data(), cohort_.scratch->drives.data());
  }

  /// dLoss/ds of a sample's active entries in a tile, from above and from the step after; returns where the next go.
  float* gather(int tile, std::size_t s, int step, const float* from_above, std::size_t active, float* gradient) {
    if (step + 1 == steps_) return std::copy_n(from_above, active, gradient);
    return gather_gradients(*cohort_.exchange, step, layer_.tiles(), step_.lists, s,
                            static_cast<std::uint32_t>(tile * width_), from_above, active, gradient);
  }

  /// The active set of a step, sample by sample.
  void list_active(int step) {
    SpikeLists& lists = step_.lists;
    const SpikeLists& active = layer_.active;
    lists.ids.clear();
    for (std::size_t s = 0; s < samples_; ++s) {
      const std::uint32_t* offsets = active.offsets.data() + (cohort_.samples.first + s) * steps_ + step;
      lists.ids.insert(lists.ids.end(), active.ids.begin() + offsets[0], active.ids.begin() + offsets[1]);
      lists.offsets[s + 1] = static_cast<std::uint32_t>(lists.ids.size());
    }
  }

  LayerState& layer_;
  const Cohort& cohort_;
  const TileRows& rows_;
  std::size_t first_row_;  // of the cohort in `rows`
  StepScratch& step_;
  int steps_;
  int width_;
  std::size_t samples_;
};

}  // namespace

int recurrent_group_size(const LayerState& layer, const PassContext& context) {
  const std::size_t sample_bytes = sizeof(float) * context.steps * static_cast<std::size_t>(layer.stride());
  return static_cast<int>(
      std::clamp<std::size_t>(context.plan->recurrent_delta_bytes / sample_bytes, 1, context.plan->recurrent_samples));
}

void recurrent_delta(LayerState& layer, SampleRange group, const TileRows& rows, const PassContext& context) {
  std::vector<std::uint32_t>& all_rows = context.shared->all_rows;
  while (all_rows.size() < static_cast<std::size_t>(group.size()) * context.steps)
    all_rows.push_back(static_cast<std::uint32_t>(all_rows.size()));
  for_each_cohort(
      layer, group, context,
      [&](SampleRange samples, StepExchange& exchange) {
        exchange.reserve_partials(layer.tiles(), largest_step(layer.active, samples, context.steps));
      },
      [&](const Cohort& cohort) { DeltaWalk(layer, group, rows, context, cohort).run(); });
}

void add_own_gradients(LayerState& layer, int tile, const SpikeRows& input, const TransposedEvents& own,
                       const PassContext& context, WorkerScratch& scratch, const float* rows, std::ptrdiff_t stride,
                       float* recurrent_gradient) {
  const auto state = own.samples.first == 0 ? kernels::Gradient::start : kernels::Gradient::add;
  kernels::weight_gradient(layer.width(), own.starts.data(), own.event_rows.data(), 0,
                           static_cast<std::uint32_t>(layer.size()), rows, stride, state, recurrent_gradient);
  if (layer.learns_constants()) {
    // With dLoss/ds known in full, the tile no longer needs the others: its recursion once more gives both.
    scratch.rows.reserve_discard(static_cast<std::size_t>(context.steps) * layer.width());
    for (int sample = own.samples.first; sample < own.samples.last; ++sample)
      add_delta_of_sample(layer, tile, sample, input, scratch.rows.data(), layer.width(), context, scratch);
    return;
  }
  // To a bias every row is an event.
  const auto count = static_cast<std::uint32_t>(own.samples.size() * context.steps);
  const std::uint32_t starts[] = {0, count};
  kernels::weight_gradient(layer.width(), starts, context.shared->all_rows.data(), 0, 1, rows, stride,
                           kernels::Gradient::add, layer.bias_gradient(tile));
}

}  // namespace spikeloom
