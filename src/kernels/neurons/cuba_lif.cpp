// The kernels of network/models/cuba_lif.inl.hpp.
#include "kernels/kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/neurons/cuba_lif.cpp"
#include <hwy/foreach_target.h>

#define SPIKELOOM_MODEL CubaLif
#define SPIKELOOM_KERNELS kCubaLif
#include "kernels/spiking.inl.hpp"
