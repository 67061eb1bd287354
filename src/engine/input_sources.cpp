#include "engine/input_sources.hpp"

#include <algorithm>
#include <utility>

#include "engine/passes.hpp"

namespace spikeloom {
namespace {

using Sent = InputSources::Sent;

/// One list a row from those of several, each shifted by the neurons of the ones before.
void join_lists(const std::vector<Sent>& from, int samples, int steps, WorkerTeam& team, SpikeLists& out) {
  std::vector<std::uint32_t> places(samples + 1, 0);  // of each sample's first entry
  for (int sample = 0; sample < samples; ++sample) {
    places[sample + 1] = places[sample];
    for (const Sent& lists : from) {
      const std::uint32_t* offsets = lists.rows.offsets;
      const std::size_t first = static_cast<std::size_t>(sample) * steps;
      if (offsets) places[sample + 1] += offsets[first + steps - lists.lag] - offsets[first];
    }
  }
  out.offsets.resize(static_cast<std::size_t>(samples) * steps + 1);
  out.ids.resize(places.back());
  out.offsets.back() = places.back();
  team.for_each(samples, [&](std::size_t sample, int) {
    std::uint32_t place = places[sample];
    for (int step = 0; step < steps; ++step) {
      const std::size_t row = sample * steps + step;
      out.offsets[row] = place;
      std::uint32_t shift = 0;
      for (const Sent& lists : from) {
        for (const std::uint32_t id : lists.arriving(row, step)) out.ids[place++] = id + shift;
        shift += static_cast<std::uint32_t>(lists.rows.neurons);
      }
    }
  });
}

}  // namespace

InputSources::InputSources(std::vector<Source> sources) : sources_(std::move(sources)) {
  for (const Source& source : sources_) {
    neurons_ += source.neurons;
    inner_ = inner_ || source.inner;
    lagging_ = lagging_ || source.lag > 0;
    if (wants_gradient(source)) layers_.push_back(source.layer);
  }
}

LayerState* InputSources::only() const {
  const Source& first = sources_.front();
  return joined() || !first.layer || first.adds || first.layer->outgoing.changes() ? nullptr : first.layer;
}

InputSources::Sent InputSources::active_of(const Source& source) {
  return {wants_gradient(source) ? source.layer->sent_active().view(source.neurons)
                                 : SpikeRows{nullptr, nullptr, source.neurons},
          source.lag};
}

void InputSources::join(const SpikeRows& data, bool with_loop, int samples, int steps, WorkerTeam& team) {
  std::vector<Sent> sent;
  for (const Source& source : sources_) {
    sent.push_back({source.layer ? source.layer->sent_spikes() : data, source.lag});
    if (source.inner && !with_loop) sent.back().rows.offsets = nullptr;
  }
  if (!joined()) {
    view_ = sent.front().rows;
    return;
  }
  join_lists(sent, samples, steps, team, spikes_);
  view_ = spikes_.view(neurons_);
  view_.value = sent.front().rows.value;  // the same of all (network/checks.cpp)
}

void InputSources::join_active(int samples, int steps, WorkerTeam& team) {
  if (!joined()) return;
  std::vector<Sent> active;
  for (const Source& source : sources_) active.push_back(active_of(source));
  join_lists(active, samples, steps, team, active_);
}

void InputSources::prepare_gradient() {
  for (LayerState* layer : layers_) prepare_spike_gradient(*layer);
}

void InputSources::distribute(int sample, int steps, const float* gradient, WorkerScratch& scratch) const {
  if (!joined()) {
    distribute_to_tiles(*sources_.front().layer, sample, steps, gradient, scratch, sources_.front().adds);
    return;
  }
  // Each source's share, row by row as it arrived.
  const std::size_t first = static_cast<std::size_t>(sample) * steps;
  std::vector<std::vector<float>> shares(sources_.size());
  for (int step = 0; step < steps; ++step) {
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      const std::size_t count = active_of(sources_[s]).arriving(first + step, step).size();
      shares[s].insert(shares[s].end(), gradient, gradient + count);
      gradient += count;
    }
  }
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (!wants_gradient(sources_[s])) continue;
    LayerState& layer = *sources_[s].layer;
    const std::uint32_t* offsets = layer.sent_active().offsets.data() + first;
    shares[s].resize(offsets[steps] - offsets[0], 0.0f);  // what is sent last does not arrive any more
    distribute_to_tiles(layer, sample, steps, shares[s].data(), scratch, sources_[s].adds);
  }
}

}  // namespace spikeloom
