#include "engine/step_exchange.hpp"

#include <bit>

#include "kernels/kernels.hpp"

namespace spikeloom {

void list_spikes(const StepExchange& exchange, int step, int tiles, int width, std::size_t samples, SpikeLists& out) {
  out.ids.clear();
  for (std::size_t s = 0; s < samples; ++s) {
    for (int tile = 0; tile < tiles; ++tile) {
      for (std::uint64_t left = exchange.spiked(tile, step)[s]; left != 0; left &= left - 1)
        out.ids.push_back(static_cast<std::uint32_t>(tile * width + std::countr_zero(left)));
    }
    out.offsets[s + 1] = static_cast<std::uint32_t>(out.ids.size());
  }
}

void AddedParts::add(const StepExchange& exchange, int step, int tiles, std::size_t events) {
  const std::size_t count = whole_lines<float>(events);  // what lies behind the events is added and not read
  sums_.reserve_discard(count);
  parts_.clear();
  for (int tile = 0; tile < tiles; ++tile) parts_.push_back(exchange.partials(tile, step));
  kernels::add_in_order(parts_, count, sums_.data());
}

}  // namespace spikeloom
