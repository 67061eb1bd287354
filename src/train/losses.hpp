// The losses of a configuration as the engine wants them.
#pragma once

#include <memory>

#include <spikeloom/configuration.hpp>

#include "engine/readout_loss.hpp"

namespace spikeloom {

/// The configured loss for the network's last layer (formulas: loss_formulas.hpp). Throws UserError where loss and last
/// layer do not fit (network/checks.hpp).
std::unique_ptr<ReadoutLoss> make_readout_loss(const LossSpec& spec, const NetworkSpec& network);

}  // namespace spikeloom
