// Forward pass of a loop: of one recurrent layer, I[t] = s_in[t] W + b + s[t-1] R, or of several layers, where some of
// the sources of s_in are in the loop, too. The layers go step by step in one of two schedules (cohorts.hpp). What
// comes from outside is made for some steps at a time, tile by tile, while the tile's W is near; what comes from the
// loop is added in the step. Sums run in this order: events from outside in ascending id, events from other layers of
// the loop likewise, the bias, own events in ascending id.
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
  ForwardWalk(const Loop& loop, std::span<const LoopInput> inputs, std::span<const TileRows> products,
              SampleRange group, const PassContext& context, const Cohort& cohort)
      : cohort_(cohort),
        first_row_(static_cast<std::size_t>(cohort.samples.first - group.first) * context.steps),
        steps_(context.steps),
        samples_(cohort.size()) {
    for (int m = 0; m < loop.size(); ++m) {
      LayerState& layer = loop.layer(m);
      StagedEntries* staged = context.shared->layers[m].staged.data() + cohort.number * layer.tiles();
      turns_.push_back({.layer = layer,
                        .member = loop.member(m),
                        .input = inputs[m],
                        .products = products[m],
                        .tiles = cohort.tiles[m],
                        .exchange = (*cohort.exchanges)[m],
                        .scratch = cohort.scratch->steps[m],
                        .staged = staged,
                        .width = layer.width()});
      start(turns_.back());
    }
  }

  void run() {
    std::size_t step_floats = 0;
    for (const Turn& turn : turns_) step_floats += turn.input.dense ? 0 : floats_of_step(turn);
    const int at_a_time = std::clamp<int>(
        static_cast<int>(kCurrentBytes / sizeof(float) / std::max<std::size_t>(1, step_floats)), 1, steps_);
    for (int first = 0; first < steps_; first += at_a_time) {
      const int count = std::min(at_a_time, steps_ - first);
      for (Turn& turn : turns_) {
        if (!turn.input.dense) make_currents(turn, first, count);
      }
      for (int step = first; step < first + count; ++step) {
        for (Turn& turn : turns_) {
          advance(turn, step, first, count);
          if (!cohort_.meet()) return;
        }
      }
    }
    for (Turn& turn : turns_) hand_on(turn);
  }

 private:
  /// One layer on its way.
  struct Turn {
    LayerState& layer;
    const LoopMember& member;
    const LoopInput& input;
    const TileRows& products;
    const std::vector<int>& tiles;
    StepExchange& exchange;
    StepScratch& scratch;
    StagedEntries* staged;  // of the cohort's tiles
    int width;
  };
  /// W s of an own tile at a step, row after row.
  struct Currents {
    const float* data;
    std::ptrdiff_t stride;
  };

  std::size_t floats_of_step(const Turn& turn) const { return turn.tiles.size() * samples_ * turn.width; }
  int sample_of(std::size_t s) const { return cohort_.samples.first + static_cast<int>(s); }
  /// Of an own tile.
  float* state_of(const Turn& turn, std::size_t i, std::size_t s) const {
    return turn.scratch.state.data() + (i * samples_ + s) * turn.layer.state_floats();
  }

  /// States and spikes of the step before the first.
  void start(Turn& turn) {
    StepScratch& own = turn.scratch;
    const std::size_t floats = turn.layer.state_floats();
    own.state.reserve_discard(turn.tiles.size() * samples_ * floats);
    for (std::size_t i = 0; i < turn.tiles.size(); ++i) {
      for (std::size_t s = 0; s < samples_; ++s) {
        const float* carried = turn.layer.carried.before(turn.tiles[i], sample_of(s));
        carried ? std::copy_n(carried, floats, state_of(turn, i, s)) : std::fill_n(state_of(turn, i, s), floats, 0.0f);
      }
    }
    own.codes.reserve_discard(samples_ * turn.width);
    own.membranes.reserve_discard(samples_ * turn.width);
    if (turn.member.inner_links() > 0) own.joined.reserve_discard(samples_ * turn.width);
    for (SpikeLists* lists : {&own.lists, &own.sent, &own.nothing}) {
      lists->offsets.assign(samples_ + 1, 0);
      lists->ids.clear();
    }
    own.listed = own.sent_listed = -1;
    for (std::size_t s = 0; turn.layer.recurrent() && s < samples_; ++s) {
      const std::span<const std::uint32_t> ids = row_of(turn.layer.carried.spikes(), sample_of(s));
      own.lists.ids.insert(own.lists.ids.end(), ids.begin(), ids.end());
      own.lists.offsets[s + 1] = static_cast<std::uint32_t>(own.lists.ids.size());
    }
    for (const int tile : turn.tiles) turn.staged[tile].codes.clear(), turn.staged[tile].membranes.clear();
  }

  void hand_on(const Turn& turn) const {
    for (std::size_t i = 0; i < turn.tiles.size(); ++i) {
      for (std::size_t s = 0; s < samples_; ++s) {
        float* carry = turn.layer.carried.after(turn.tiles[i], sample_of(s));
        if (carry) std::copy_n(state_of(turn, i, s), turn.layer.state_floats(), carry);
      }
    }
  }

  /// (own tiles, steps, samples, width) of what comes from outside.
  void make_currents(Turn& turn, int first, int count) {
    turn.scratch.currents.reserve_discard(floats_of_step(turn) * count);
    float* out = turn.scratch.currents.data();
    for (const int tile : turn.tiles) {
      for (std::size_t s = 0; s < samples_; ++s) {
        const std::size_t row = (cohort_.samples.first + s) * steps_ + first;
        kernels::TileInput from = turn.layer.input_of(tile, turn.input.spikes, row);
        from.bias = identity().zeros.data();  // it is added in the step
        kernels::forward_membrane(turn.width, from, identity().constants(), count, out + s * turn.width,
                                  static_cast<std::ptrdiff_t>(samples_) * turn.width);
      }
      out += count * samples_ * turn.width;
    }
  }

  Currents currents_of(const Turn& turn, std::size_t i, int step, int first, int count) const {
    if (turn.input.dense)
      return {turn.products.at(turn.tiles[i], first_row_ + step), steps_ * turn.products.row_stride};
    return {turn.scratch.currents.data() + (i * count + step - first) * samples_ * turn.width, turn.width};
  }

  /// The spikes of a layer at a step, from all tiles. Every worker lists them for itself: that is cheaper than a second
  /// meeting.
  const SpikeLists& spikes_of(Turn& turn, int step) {
    StepScratch& own = turn.scratch;
    if (own.listed == step) return own.lists;
    list_spikes(turn.exchange, step, turn.layer.tiles(), turn.width, samples_, own.lists);
    own.listed = step;
    return own.lists;
  }

  /// Those that reach other layers.
  const SpikeLists& sent_of(Turn& turn, int step) {
    const Outgoing& outgoing = turn.layer.outgoing;
    StepScratch& own = turn.scratch;
    const SpikeLists& all = spikes_of(turn, step);
    if (!outgoing.drops()) return all;
    if (own.sent_listed == step) return own.sent;
    own.sent.ids.clear();
    for (std::size_t s = 0; s < samples_; ++s) {
      for (std::uint32_t e = all.offsets[s]; e < all.offsets[s + 1]; ++e) {
        if (!outgoing.leaves_out(sample_of(s), step, all.ids[e])) own.sent.ids.push_back(all.ids[e]);
      }
      own.sent.offsets[s + 1] = static_cast<std::uint32_t>(own.sent.ids.size());
    }
    own.sent_listed = step;
    return own.sent;
  }

  /// Adds what comes from other layers of the loop.
  Currents join(Turn& turn, int tile, int step, Currents outside) {
    const int width = turn.width;
    float* joined = turn.scratch.joined.data();
    for (int k = 0; k < turn.member.inner_links(); ++k) {
      const LoopLink& link = turn.member.links[k];
      const SpikeLists& from = sent_of(turns_[link.source], step - link.lag);
      kernels::add_rows(width, from.offsets.data(), from.ids.data(), static_cast<std::uint32_t>(samples_),
                        turn.member.weights_of(link, tile), k == 0 ? kernels::Gradient::start : kernels::Gradient::add,
                        joined);
    }
    // What a spike counts is the same of all (network/checks.cpp).
    const float value = turns_[turn.member.links[0].source].layer.outgoing.value();
    for (std::size_t s = 0; s < samples_; ++s) {
      const float* current = outside.data + static_cast<std::ptrdiff_t>(s) * outside.stride;
      for (int column = 0; column < width; ++column) {
        float& sum = joined[s * width + column];
        sum = current[column] + value * sum;
      }
    }
    return {joined, width};
  }

  void advance(Turn& turn, int step, int first, int count) {
    LayerState& layer = turn.layer;
    StepScratch& own = turn.scratch;
    const int width = turn.width;
    const bool from_loop = turn.member.inner_links() > 0;
    const SpikeLists& again = layer.recurrent() ? spikes_of(turn, step - 1) : own.nothing;
    for (std::size_t i = 0; i < turn.tiles.size(); ++i) {
      const int tile = turn.tiles[i];
      Currents currents = currents_of(turn, i, step, first, count);
      if (from_loop) currents = join(turn, tile, step, currents);
      const kernels::StepInput in{layer.bias(tile),     currents.data,   currents.stride, layer.recurrent_weights(tile),
                                  again.offsets.data(), again.ids.data()};
      std::uint8_t* counts =
          layer.traces[tile].counts.data() + static_cast<std::size_t>(cohort_.samples.first) * steps_ + step;
      const kernels::StepOut out{counts, steps_, own.codes.data(), own.membranes.data(),
                                 turn.exchange.spiked(tile, step)};
      const std::size_t entries = layer.kernels().forward_step(width, in, layer.constants(tile, turn.input.listing),
                                                               static_cast<int>(samples_), state_of(turn, i, 0), out);
      StagedEntries& staged = turn.staged[tile];
      staged.codes.insert(staged.codes.end(), own.codes.data(), own.codes.data() + entries);
      staged.membranes.insert(staged.membranes.end(), own.membranes.data(), own.membranes.data() + entries);
    }
  }

  const Cohort& cohort_;
  std::vector<Turn> turns_;  // of each layer of the loop
  std::size_t first_row_;    // of the cohort in `products`
  int steps_;
  std::size_t samples_;
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

/// Takes a group through all steps and appends what it made. `products`: W s of the layers in dense mode.
void forward_group(const Loop& loop, std::span<const LoopInput> inputs, std::span<const TileRows> products,
                   SampleRange group, const PassContext& context) {
  const int cohorts = cohort_count(loop, group);
  for (int m = 0; m < loop.size(); ++m) {
    std::vector<StagedEntries>& staged = context.shared->layer(m).staged;
    const std::size_t count = static_cast<std::size_t>(cohorts) * loop.layer(m).tiles();
    if (staged.size() < count) staged.resize(count);
  }
  for_each_cohort(
      loop, group, context,
      [&](SampleRange samples, std::vector<StepExchange>& exchanges) {
        for (int m = 0; m < loop.size(); ++m) exchanges[m].reserve_spikes(loop.layer(m).tiles(), samples.size());
      },
      [&](const Cohort& cohort) { ForwardWalk(loop, inputs, products, group, context, cohort).run(); });
  context.team->run([&](int worker) {
    for (int m = 0; m < loop.size(); ++m) {
      LayerState& layer = loop.layer(m);
      const std::vector<StagedEntries>& staged = context.shared->layers[m].staged;
      for (int tile = 0; tile < layer.tiles(); ++tile) {
        if (layer.owner(tile) != worker) continue;
        for (int number = 0; number < cohorts; ++number) {
          append_staged(layer, tile, cohort_samples(loop, group, number), context.steps,
                        staged[static_cast<std::size_t>(number) * layer.tiles() + tile], inputs[m].listing,
                        (*context.scratch)[worker]);
        }
      }
    }
  });
}

}  // namespace

void forward_loop(const Loop& loop, std::span<const LoopInput> inputs, const PassContext& context) {
  int most = context.samples;
  for (int m = 0; m < loop.size(); ++m) {
    most = std::min(most, inputs[m].dense ? dense_group_size(context) : context.plan->recurrent_samples);
    for (TileTrace& trace : loop.layer(m).traces) trace.clear(context.rows(), loop.layer(m).width());
    if (inputs[m].dense) gather_weights(loop.layer(m), context, context.shared->layer(m).weights);
  }
  std::vector<TileRows> products(loop.size());
  for (const SampleRange& group : ranges_of({0, context.samples}, most)) {
    for (int m = 0; m < loop.size(); ++m) {
      if (inputs[m].dense)
        products[m] = dense_currents(loop.member(m), inputs[m].spikes, group, context, context.shared->layer(m));
    }
    forward_group(loop, inputs, products, group, context);
  }
  for (const LoopMember& member : loop.members()) merge_spikes(*member.layer, context);
}

}  // namespace spikeloom
