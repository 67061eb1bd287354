#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/encode/inner_ear_kernel.cpp"
#include <hwy/foreach_target.h>
// after foreach_target
#include <hwy/highway.h>

#include "data/encode/ear_membrane.inl.hpp"
#include "data/encode/ear_nerve.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom {
namespace HWY_NAMESPACE {

/// Channel c of a group's first half shares a complex number with channel c + kEarPair, at any vector width: rounding
/// mixes the two.
std::size_t RunEarGroup(const EarJob& job) {
  using D = hn::CappedTag<float, 16>;
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  std::uint32_t* events = job.events;
  HWY_ALIGN float velocity[kEarChunk * 32];
  for (int block = 0; block < kEarPair; block += lanes) {
    fill_spectrum(d, job, block);
    transform_rows(d, *job.transform, job.rows, 0);
    const auto channel = static_cast<std::uint32_t>(job.first_channel + block);
    Nerve<D> first(job.key, channel);
    Nerve<D> second(job.key, channel + kEarPair);
    for (int step = 0; step < job.steps; step += kEarChunk) {
      fetch_velocity(d, job, step, velocity);
      events = advance(d, first, second, velocity, step, HWY_MIN(kEarChunk, job.steps - step), events);
    }
  }
  return static_cast<std::size_t>(events - job.events);
}

void DrawEarExponentials(std::array<std::uint32_t, 2> key, std::uint32_t channel, std::uint32_t first_block,
                         float* to) {
  draw_exponentials(hn::CappedTag<float, 16>(), key, channel, first_block, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace spikeloom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom {

HWY_EXPORT(RunEarGroup);
HWY_EXPORT(DrawEarExponentials);

std::size_t run_ear_group(const EarJob& job) { return HWY_DYNAMIC_DISPATCH(RunEarGroup)(job); }

void draw_ear_exponentials(std::array<std::uint32_t, 2> key, std::uint32_t channel, std::uint32_t first_block,
                           float* to) {
  HWY_DYNAMIC_DISPATCH(DrawEarExponentials)(key, channel, first_block, to);
}

}  // namespace spikeloom
#endif
