#include "engine/carried_state.hpp"

#include <algorithm>
#include <utility>

namespace spikeloom {

void CarriedState::begin(int samples, int tiles, std::size_t floats, bool learns_constants) {
  samples_ = samples;
  tiles_ = tiles;
  floats_ = floats;
  const std::size_t all = place(0, samples);
  before_.reserve_discard(all);
  after_.reserve_discard(all);
  std::fill_n(before_.data(), all, 0.0f);
  if (learns_constants) last_states_.reserve_discard(all);
  last_spiked_.assign(learns_constants ? static_cast<std::size_t>(samples) * tiles : 0, 0);
  first_chunk_ = true;
  spikes_.offsets.assign(static_cast<std::size_t>(samples) + 1, 0);
  spikes_.ids.clear();
}

void CarriedState::go_on(const SpikeLists* own, int steps) {
  std::swap(before_, after_);
  first_chunk_ = false;
  if (!own) return;
  spikes_.ids.clear();
  for (std::size_t sample = 0; sample + 1 < spikes_.offsets.size(); ++sample) {
    const std::span<const std::uint32_t> last = row_of(*own, (sample + 1) * steps - 1);
    spikes_.ids.insert(spikes_.ids.end(), last.begin(), last.end());
    spikes_.offsets[sample + 1] = static_cast<std::uint32_t>(spikes_.ids.size());
  }
}

CarriedState::LastStep CarriedState::last_step(int tile, int sample) const {
  if (first_chunk_) return {};
  return {last_states_.data() + place(tile, sample), last_spiked_[static_cast<std::size_t>(sample) * tiles_ + tile]};
}

void CarriedState::keep_last_step(int tile, int sample, const float* states, std::uint64_t spiked) {
  if (last_spiked_.empty()) return;
  std::copy_n(states, floats_, last_states_.data() + place(tile, sample));
  last_spiked_[static_cast<std::size_t>(sample) * tiles_ + tile] = spiked;
}

std::size_t CarriedState::bytes() const {
  if (tiles_ == 0) return 0;
  const std::size_t copies = last_spiked_.empty() ? 2 : 3;
  return copies * sizeof(float) * place(0, samples_) + last_spiked_.size() * sizeof(std::uint64_t) + spikes_.bytes();
}

}  // namespace spikeloom
