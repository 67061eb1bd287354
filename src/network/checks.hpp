// Checks that concern more than one setting.
#pragma once

#include <optional>
#include <string>

#include <spikeloom/configuration.hpp>

namespace spikeloom {

/// What is wrong, and the settings that it is about, most telling first, as "loss.kind" or "layers.2.neuron" (layers
/// counted from 0).
struct Conflict {
  std::vector<std::string> keys;
  std::string message;
};

/// The first conflict among a network's layers, or none.
std::optional<Conflict> find_conflict(const NetworkSpec& network);
/// Which losses and decisions fit which last layer: cross_entropy one that does not spike, spike_count one that does,
/// and of spikes there are only the decisions auto, sum and mean. The network has a layer.
std::optional<Conflict> find_conflict(const LossSpec& loss, const NetworkSpec& network);
/// The first conflict in a whole configuration whose defaults are filled in, or none.
std::optional<Conflict> find_conflict(const Configuration& configuration);

}  // namespace spikeloom
