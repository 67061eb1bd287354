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

/// Two channels share a complex row: the first N channels of a block are its real parts, the next N its imaginary parts.
std::size_t RunEarGroup(const EarJob& job) {
  const hn::CappedTag<float, 16> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  std::size_t events = 0;
  HWY_ALIGN float velocity[kEarChunk * 16];
  for (int block = 0; block < kEarGroup; block += 2 * lanes) {
    fill_spectrum(d, job, block);
    transform_rows(d, *job.transform, job.rows, 0);
    for (int half = 0; half < 2; ++half) {
      Nerve nerve(d, job.key, static_cast<std::uint32_t>(job.first_channel + block + half * lanes));
      for (int step = 0; step < job.steps; step += kEarChunk) {
        const int count = HWY_MIN(kEarChunk, job.steps - step);
        fetch_velocity(d, job, half, step, velocity);
        events += nerve.advance(d, velocity, step, count, job.events + events);
      }
    }
  }
  return events;
}

}  // namespace HWY_NAMESPACE
}  // namespace spikeloom
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom {

HWY_EXPORT(RunEarGroup);

std::size_t run_ear_group(const EarJob& job) { return HWY_DYNAMIC_DISPATCH(RunEarGroup)(job); }

}  // namespace spikeloom
#endif
