// Forward pass of a recurrent layer: I[t] = s_in[t] W + b + s[t-1] R, step by step in one of two schedules
// (cohorts.hpp). The part of the layer below is made for some steps at a time, tile by tile, while the tile's W is
// near; what the layer's own spikes add is made in the step. Sums run in this order: input events in ascending id, the
// bias, own events in ascending id.
#include <algorithm>

#include "engine/cohorts.hpp"

namespace spikeloom {
namespace {

// Currents that a worker makes before it advances. They are written and read in order, so they may leave its L2; each
// tile's W has to enter it anew for every so many steps (512 KB: 8 % slower forward on shd-rnn; Emerald Rapids).
constexpr std::size_t kCurrentBytes = std::size_t{8} << 20;
constexpr int kWidest = 64;

/// A neuron without memory or gain: its membrane is its input.
struct Identity {
  Identity() : zeros(kWidest), ones(kWidest) { ones.fill(1.0f); }
  kernels::TileConstants constants() const {
    kernels::TileConstants constants;
    constants[NeuronConstant::decay] = zeros.data();
    constants[NeuronConstant::gain] = ones.data();
    return constants;
  }
  AlignedBuffer<float> zeros;
  AlignedBuffer<float> ones;
};

const Identity& identity() {
  static const Identity instance;
  return instance;
}

/// One worker's way through the steps with one cohort.
class ForwardWalk {
 public:
  ForwardWalk(LayerState& layer, Listing listing, const PassContext& context, const Cohort& cohort)
      : layer_(layer),
        listing_(listing),
        cohort_(cohort),
        step_(cohort.scratch->step),
        steps_(context.steps),
        width_(layer.width()),
        samples_(cohort.size()),
        staged_(context.shared->staged.data() + static_cast<std::size_t>(cohort.number) * layer.tiles()) {
    step_.codes.reserve_discard(samples_ * width_);
    step_.membranes.reserve_discard(samples_ * width_);
    start();
    for (const int tile : cohort.tiles) staged_[tile].codes.clear(), staged_[tile].membranes.clear();
  }

  /// W s from spike lists, made on the way.
  void run(const SpikeRows& input) {
    const std::size_t step_floats = cohort_.tiles.size() * samples_ * width_;
    const int at_a_time = std::clamp<int>(
        static_cast<int>(kCurrentBytes / sizeof(float) / std::max<std::size_t>(1, step_floats)), 1, steps_);
    step_.currents.reserve_discard(step_floats * at_a_time);
    for (int first = 0; first < steps_; first += at_a_time) {
      const int count = std::min(at_a_time, steps_ - first);
      for (std::size_t i = 0; i < cohort_.tiles.size(); ++i) make_currents(input, i, first, count);
      for (int step = first; step < first + count; ++step) {
        const auto current_of = [&](std::size_t i) {
          return step_.currents.data() + (i * count + step - first) * samples_ * width_;
        };
        if (!advance(step, current_of, width_)) return;
      }
    }
    hand_on();
  }

  /// W s given, as rows of the group.
  void run(const TileRows& currents, std::size_t first_row) {
    for (int step = 0; step < steps_; ++step) {
      const auto current_of = [&](std::size_t i) { return currents.at(cohort_.tiles[i], first_row + step); };
      if (!advance(step, current_of, steps_ * currents.row_stride)) return;
    }
    hand_on();
  }

 private:
  float* state_of(std::size_t i, std::size_t s) {
    return step_.state.data() + (i * samples_ + s) * layer_.state_floats();
  }
  int sample_of(std::size_t s) const { return cohort_.samples.first + static_cast<int>(s); }

  /// States and spikes of the step before the first.
  void start() {
    step_.state.reserve_discard(cohort_.tiles.size() * samples_ * layer_.state_floats());
    for (std::size_t i = 0; i < cohort_.tiles.size(); ++i) {
      for (std::size_t s = 0; s < samples_; ++s) {
        const float* carried = layer_.carried.before(cohort_.tiles[i], sample_of(s));
        carried ? std::copy_n(carried, layer_.state_floats(), state_of(i, s))
                : std::fill_n(state_of(i, s), layer_.state_floats(), 0.0f);
      }
    }
    step_.lists.offsets.assign(1, 0);
    step_.lists.ids.clear();
    for (std::size_t s = 0; s < samples_; ++s) {
      const std::span<const std::uint32_t> ids = row_of(layer_.carried.spikes(), sample_of(s));
      step_.lists.ids.insert(step_.lists.ids.end(), ids.begin(), ids.end());
      step_.lists.offsets.push_back(static_cast<std::uint32_t>(step_.lists.ids.size()));
    }
  }

  void hand_on() {
    for (std::size_t i = 0; i < cohort_.tiles.size(); ++i) {
      for (std::size_t s = 0; s < samples_; ++s) {
        float* carry = layer_.carried.after(cohort_.tiles[i], sample_of(s));
        if (carry) std::copy_n(state_of(i, s), layer_.state_floats(), carry);
      }
    }
  }

  /// (steps, samples, width) of the i-th own tile.
  void make_currents(const SpikeRows& input, std::size_t i, int first, int count) {
    float* out = step_.currents.data() + i * count * samples_ * width_;
    for (std::size_t s = 0; s < samples_; ++s) {
      const std::size_t row = (cohort_.samples.first + s) * steps_ + first;
      kernels::TileInput from = layer_.input_of(cohort_.tiles[i], input, row);
      from.bias = identity().zeros.data();  // it is added in the step
      kernels::forward_membrane(width_, from, identity().constants(), count, out + s * width_,
                                static_cast<std::ptrdiff_t>(samples_) * width_);
    }
  }

  template <class CurrentOf>
  bool advance(int step, const CurrentOf& current_of, std::ptrdiff_t current_stride) {
    // Every worker lists all spikes for itself: that is cheaper than a second meeting.
    if (step > 0) list_spikes(*cohort_.exchange, step - 1, layer_.tiles(), width_, samples_, step_.lists);
    for (std::size_t i = 0; i < cohort_.tiles.size(); ++i) {
      const int tile = cohort_.tiles[i];
      const kernels::StepInput in{
          layer_.bias(tile),          current_of(i),         current_stride, layer_.recurrent_weights(tile),
          step_.lists.offsets.data(), step_.lists.ids.data()};
      std::uint8_t* counts =
          layer_.traces[tile].counts.data() + static_cast<std::size_t>(cohort_.samples.first) * steps_ + step;
      const kernels::StepOut out{counts, steps_, step_.codes.data(), step_.membranes.data(),
                                 cohort_.exchange->spiked(tile, step)};
      const std::size_t entries = layer_.kernels().forward_step(width_, in, layer_.constants(tile, listing_),
                                                                static_cast<int>(samples_), state_of(i, 0), out);
      StagedEntries& staged = staged_[tile];
      staged.codes.insert(staged.codes.end(), step_.codes.data(), step_.codes.data() + entries);
      staged.membranes.insert(staged.membranes.end(), step_.membranes.data(), step_.membranes.data() + entries);
    }
    return cohort_.meet();
  }

  LayerState& layer_;
  Listing listing_;
  const Cohort& cohort_;
  StepScratch& step_;
  int steps_;
  int width_;
  std::size_t samples_;
  StagedEntries* staged_;  // of the cohort's tiles
};

/// Appends a cohort's entries to a tile's trace: from (step, sample) to (sample, step) order.
void append_staged(LayerState& layer, int tile, SampleRange samples, int steps, const StagedEntries& staged,
                   Listing listing, WorkerScratch& scratch) {
  const std::uint8_t* counts = layer.traces[tile].counts.data() + static_cast<std::size_t>(samples.first) * steps;
  std::vector<std::size_t>& place = scratch.places;  // of a sample: where its next entry goes
  place.assign(samples.size() + 1, 0);
  for (int s = 0; s < samples.size(); ++s) {
    place[s + 1] = place[s];
    for (int step = 0; step < steps; ++step) place[s + 1] += counts[s * steps + step];
  }
  scratch.codes.reserve_discard(staged.codes.size());
  scratch.membranes.reserve_discard(staged.codes.size());
  std::size_t from = 0;
  for (int step = 0; step < steps; ++step) {
    for (int s = 0; s < samples.size(); ++s) {
      for (int left = counts[s * steps + step]; left > 0; --left, ++from) {
        scratch.codes[place[s]] = staged.codes[from];
        scratch.membranes[place[s]++] = staged.membranes[from];
      }
    }
  }
  std::size_t start = 0;
  for (int s = 0; s < samples.size(); ++s) {  // by now a sample's place is its end
    append_entries(layer, tile, listing, scratch.codes.data() + start, scratch.membranes.data() + start,
                   place[s] - start, layer.traces[tile]);
    start = place[s];
  }
}

/// Takes a group through all steps (`walk` does so for one cohort on one worker) and appends what it made.
template <class Walk>
void forward_group(LayerState& layer, SampleRange group, Listing listing, const PassContext& context,
                   const Walk& walk) {
  const int cohorts = cohort_count(layer, group);
  std::vector<StagedEntries>& staged = context.shared->staged;
  if (staged.size() < static_cast<std::size_t>(cohorts) * layer.tiles())
    staged.resize(static_cast<std::size_t>(cohorts) * layer.tiles());
  for_each_cohort(
      layer, group, context,
      [&](SampleRange samples, StepExchange& exchange) { exchange.reserve_spikes(layer.tiles(), samples.size()); },
      [&](const Cohort& cohort) {
        ForwardWalk one(layer, listing, context, cohort);
        walk(one, cohort);
      });
  context.team->run([&](int worker) {
    for (int tile = 0; tile < layer.tiles(); ++tile) {
      if (layer.owner(tile) != worker) continue;
      for (int number = 0; number < cohorts; ++number) {
        append_staged(layer, tile, cohort_samples(layer, group, number), context.steps,
                      staged[static_cast<std::size_t>(number) * layer.tiles() + tile], listing,
                      (*context.scratch)[worker]);
      }
    }
  });
}

}  // namespace

void forward_recurrent_group(LayerState& layer, SampleRange group, const TileRows& currents, Listing listing,
                             const PassContext& context) {
  forward_group(layer, group, listing, context, [&](ForwardWalk& walk, const Cohort& cohort) {
    walk.run(currents, static_cast<std::size_t>(cohort.samples.first - group.first) * context.steps);
  });
}

void forward_recurrent(LayerState& layer, const SpikeRows& input, Listing listing, const PassContext& context) {
  for (TileTrace& trace : layer.traces) trace.clear(context.rows(), layer.width());
  for (const SampleRange& group : ranges_of({0, context.samples}, context.plan->recurrent_samples))
    forward_group(layer, group, listing, context, [&](ForwardWalk& walk, const Cohort&) { walk.run(input); });
  merge_spikes(layer, context);
}

}  // namespace spikeloom
