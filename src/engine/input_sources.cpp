#include "engine/input_sources.hpp"

#include <algorithm>
#include <utility>

#include "engine/passes.hpp"

namespace spikeloom {
namespace {

/// One list a row from those of several, each shifted by the neurons of the ones before; lists without offsets are
/// empty.
void join_lists(const std::vector<SpikeRows>& from, int samples, int steps, WorkerTeam& team, SpikeLists& out) {
  const std::size_t rows = static_cast<std::size_t>(samples) * steps;
  std::size_t total = 0;
  for (const SpikeRows& lists : from) total += lists.offsets ? lists.offsets[rows] : 0;
  out.offsets.resize(rows + 1);
  out.ids.resize(total);
  out.offsets.back() = static_cast<std::uint32_t>(total);
  team.for_each(samples, [&](std::size_t sample, int) {
    const std::size_t first = sample * steps;
    std::uint32_t place = 0;
    for (const SpikeRows& lists : from) place += lists.offsets ? lists.offsets[first] : 0;
    for (std::size_t row = first; row < first + steps; ++row) {
      out.offsets[row] = place;
      std::uint32_t shift = 0;
      for (const SpikeRows& lists : from) {
        for (std::uint32_t e = lists.offsets ? lists.offsets[row] : 0; lists.offsets && e < lists.offsets[row + 1]; ++e)
          out.ids[place++] = lists.ids[e] + shift;
        shift += static_cast<std::uint32_t>(lists.neurons);
      }
    }
  });
}

}  // namespace

InputSources::InputSources(std::vector<Source> sources) : sources_(std::move(sources)) {
  for (const Source& source : sources_) {
    neurons_ += source.neurons;
    if (source.layer) layers_.push_back(source.layer);
  }
}

LayerState* InputSources::only() const {
  const Source& first = sources_.front();
  return joined() || !first.layer || first.adds || first.layer->outgoing.changes() ? nullptr : first.layer;
}

void InputSources::join_spikes(const SpikeRows& data, int samples, int steps, WorkerTeam& team) {
  std::vector<SpikeRows> sent;
  for (const Source& source : sources_) sent.push_back(source.layer ? source.layer->sent_spikes() : data);
  if (!joined()) {
    view_ = sent.front();
    return;
  }
  join_lists(sent, samples, steps, team, spikes_);
  view_ = spikes_.view(neurons_);
  view_.value = sent.front().value;  // the same of all (network/checks.cpp)
}

void InputSources::join_active(int samples, int steps, WorkerTeam& team) {
  if (!joined()) return;
  std::vector<SpikeRows> active;
  for (const Source& source : sources_)
    active.push_back(source.layer ? source.layer->sent_active().view(source.neurons)
                                  : SpikeRows{nullptr, nullptr, source.neurons});
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
  const std::size_t first = static_cast<std::size_t>(sample) * steps;
  std::vector<float> part;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (!sources_[s].layer) continue;
    // Of each row, what lies behind the sources before.
    const std::uint32_t* own = sources_[s].layer->sent_active().offsets.data();
    part.clear();
    for (std::size_t row = first; row < first + steps; ++row) {
      std::uint32_t before = active_.offsets[row] - active_.offsets[first];
      for (std::size_t other = 0; other < s; ++other) {
        if (!sources_[other].layer) continue;
        const std::uint32_t* offsets = sources_[other].layer->sent_active().offsets.data();
        before += offsets[row + 1] - offsets[row];
      }
      part.insert(part.end(), gradient + before, gradient + before + (own[row + 1] - own[row]));
    }
    distribute_to_tiles(*sources_[s].layer, sample, steps, part.data(), scratch, sources_[s].adds);
  }
}

}  // namespace spikeloom
