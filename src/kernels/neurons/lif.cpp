// The kernels of network/models/lif.inl.hpp.
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/neurons/lif.cpp"
#include <hwy/foreach_target.h>

#define SPIKELOOM_MODEL Lif
#define SPIKELOOM_KERNELS kLif
#include "kernels/spiking.inl.hpp"
