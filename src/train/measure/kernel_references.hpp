// Plain loops that the kernels' results are compared with before they are timed. Each returns whether they agree.
#pragma once

#include "kernels/optimizer_step.hpp"
#include "train/measure/tile_case.hpp"

namespace spikeloom::measure {

/// The lists of the tile's first sample, as forward_tile() left them.
bool forward_is_right(TileCase& tile);
/// `rows` (kSteps, width): k delta of the last sample, whose dLoss/ds is `spike_gradient` for every active entry.
bool delta_is_right(TileCase& tile, const float* rows, float spike_gradient);
/// `gradient` (inputs, width): of `events` of one range on tile.delta(), added to zeros.
bool weight_gradient_is_right(TileCase& tile, const TransposedEvents& events, const float* gradient);
/// `out`: one number per event of `active`.
bool input_gradient_is_right(TileCase& tile, const SpikeLists& active, const float* out);
/// One parameter.
bool adam_is_right(const AdamStep& step, float value, float gradient, float first, float second, float new_value);

}  // namespace spikeloom::measure
