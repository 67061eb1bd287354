// Bookkeeping of spike lists. Most steps of a tile hold one or two entries, or none: a loop as long as the list would
// be mispredicted at every second step, so a register of entries is always handled at once, whatever is in it.
#include "kernels/kernels.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lists.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void MergeLists(TileList* tiles, std::size_t tile_count, int width, std::uint8_t flag, int steps, std::uint32_t begin,
                std::uint32_t end, std::uint32_t* offsets, std::uint32_t* ids) {
  const hn::CappedTag<std::uint32_t, 16> words;
  const hn::Rebind<std::uint8_t, decltype(words)> bytes;
  constexpr std::size_t kWords = hn::MaxLanes(words);
  static_assert(kWords <= kCodePadding);
  const auto flag_bit = hn::Set(words, flag);
  const auto column_bits = hn::Set(words, kColumnBits);
  std::uint32_t place = begin;
  for (int step = 0; step < steps; ++step) {
    offsets[step] = place;
    for (std::size_t tile = 0; tile < tile_count; ++tile) {
      const std::size_t count = tiles[tile].counts[step];
      const std::uint8_t* codes = tiles[tile].codes;
      tiles[tile].codes += count;
      const auto first_id = hn::Set(words, static_cast<std::uint32_t>(tile * width));
      std::size_t i = 0;
      do {
        const auto code = hn::PromoteTo(words, hn::LoadU(bytes, codes + i));
        const auto listed = hn::And(hn::TestBit(code, flag_bit), hn::FirstN(words, count - i));
        const auto id = hn::Compress(hn::Add(hn::And(code, column_bits), first_id), listed);
        const std::size_t found = hn::CountTrue(words, listed);
        if (place + kWords <= end) {
          hn::StoreU(id, words, ids + place);
        } else {  // what follows belongs to another worker
          hn::BlendedStore(id, hn::FirstN(words, found), words, ids + place);
        }
        place += static_cast<std::uint32_t>(found);
        i += kWords;
      } while (i < count);
    }
  }
}

/// Each step writes eight places whatever its count.
void ExpandRows(const std::uint8_t* counts, int steps, std::uint32_t* entry_rows) {
  const hn::CappedTag<std::uint32_t, 8> some;
  for (int step = 0; step < steps; ++step) {
    const auto value = hn::Set(some, static_cast<std::uint32_t>(step));
    std::uint8_t i = 0;
    do {
      for (int half = 0; half < 8; half += static_cast<int>(hn::MaxLanes(some)))
        hn::StoreU(value, some, entry_rows + i + half);
      i += 8;
    } while (i < counts[step]);
    entry_rows += counts[step];
  }
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom::kernels {

HWY_EXPORT(MergeLists);
HWY_EXPORT(ExpandRows);

void merge_lists(std::span<TileList> tiles, int width, std::uint8_t flag, int steps, std::uint32_t begin,
                 std::uint32_t end, std::uint32_t* offsets, std::uint32_t* ids) {
  HWY_DYNAMIC_DISPATCH(MergeLists)(tiles.data(), tiles.size(), width, flag, steps, begin, end, offsets, ids);
}

void expand_rows(const std::uint8_t* counts, int steps, std::uint32_t* entry_rows) {
  HWY_DYNAMIC_DISPATCH(ExpandRows)(counts, steps, entry_rows);
}

void masks_of_spikes(const TraceIn& trace, int steps, std::uint64_t* spike_masks) {
  std::fill_n(spike_masks, steps, 0);
  for (std::size_t entry = 0; entry < trace.entries; ++entry) {
    const std::uint8_t code = trace.codes[entry];
    spike_masks[trace.entry_rows[entry]] |= std::uint64_t{(code & kSpiked) != 0} << (code & kColumnBits);
  }
}

}  // namespace spikeloom::kernels
#endif
