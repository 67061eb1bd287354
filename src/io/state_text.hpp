// The training state as texts of a checkpoint's metadata: whole numbers in decimal, other numbers as hexadecimal
// floats, which lose nothing.
#pragma once

#include <map>
#include <string>

#include "train/training_state.hpp"

namespace spikeloom {

using Texts = std::map<std::string, std::string>;

/// All of the state but totals.fired.
Texts state_to_texts(const TrainingState& state);

/// The inverse, for a network of `layers` layers. `where` names the file. Throws UserError naming the entry that is
/// missing or no such number.
TrainingState state_from_texts(const Texts& texts, std::size_t layers, const std::string& where);

}  // namespace spikeloom
