// Surrogate derivatives of the entries of lists.
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/surrogates.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/lanes.inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace spikeloom::kernels::HWY_NAMESPACE {
namespace {

#include "network/surrogates.inl.hpp"

template <class Surrogate>
void derivatives_of(float slope, float amplitude, float threshold, const float* membranes, std::size_t count,
                    float* derivatives) {
  const SurrogateConstants<Lanes> constants{lanes(slope), lanes(amplitude), lanes(1.0f)};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Lanes x = load_unaligned(membranes + i) - lanes(threshold);
    store_unaligned(Surrogate::template derivative<Lanes>(constants, x), derivatives + i);
  }
  if (i == count) return;
  alignas(64) float rest[kLanes] = {};
  for (std::size_t j = i; j < count; ++j) rest[j - i] = membranes[j];
  store(Surrogate::template derivative<Lanes>(constants, load(rest) - lanes(threshold)), rest);
  for (std::size_t j = i; j < count; ++j) derivatives[j] = rest[j - i];
}

void SurrogateDerivatives(SurrogateKind kind, float slope, float amplitude, float threshold, const float* membranes,
                          std::size_t count, float* derivatives) {
  switch (kind) {
    case SurrogateKind::superspike:
      return derivatives_of<SuperSpike>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::triangle:
      return derivatives_of<Triangle>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::box:
      return derivatives_of<Box>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::quadratic:
      return derivatives_of<Quadratic>(slope, amplitude, threshold, membranes, count, derivatives);
    case SurrogateKind::arctan:
      return derivatives_of<Arctan>(slope, amplitude, threshold, membranes, count, derivatives);
  }
}

}  // namespace
}  // namespace spikeloom::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spikeloom::kernels {

HWY_EXPORT(SurrogateDerivatives);

void surrogate_derivatives(const SurrogateSpec& surrogate, float threshold, const float* membranes, std::size_t count,
                           float* derivatives) {
  const SurrogateNumbers numbers = surrogate_numbers(surrogate);
  HWY_DYNAMIC_DISPATCH(SurrogateDerivatives)
  (surrogate.kind, static_cast<float>(numbers.slope), static_cast<float>(numbers.amplitude), threshold, membranes,
   count, derivatives);
}

}  // namespace spikeloom::kernels
#endif
