// The kernels of network/models/adaptive_current.inl.hpp.
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/neurons/adaptive_current.cpp"
#include <hwy/foreach_target.h>

#define SPIKELOOM_MODEL AdaptiveCurrent
#define SPIKELOOM_KERNELS kAdaptiveCurrent
#include "kernels/spiking.inl.hpp"
