// What a data set holds, printed; shared by `data info` and `info`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/describe.hpp"

namespace spikeloom {

nlohmann::ordered_json to_json(const DatasetDescription& description);
void print(const DatasetDescription& description, const Binning& binning);

}  // namespace spikeloom
