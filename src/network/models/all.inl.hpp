// All models of neurons that spike, and the list of them. Included like each of them.
#include "network/models/membrane.inl.hpp"

#include "network/models/adaptive_current.inl.hpp"
#include "network/models/adaptive_threshold.inl.hpp"
#include "network/models/cuba_lif.inl.hpp"
#include "network/models/lif.inl.hpp"
