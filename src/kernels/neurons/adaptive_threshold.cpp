// The kernels of network/models/adaptive_threshold.inl.hpp.
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/neurons/adaptive_threshold.cpp"
#include <hwy/foreach_target.h>

#define SPIKELOOM_MODEL AdaptiveThreshold
#define SPIKELOOM_KERNELS kAdaptiveThreshold
#include "kernels/spiking.inl.hpp"
