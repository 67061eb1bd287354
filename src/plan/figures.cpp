#include "plan/figures.hpp"

#include <algorithm>

#include <spikeloom/error.hpp>

namespace spikeloom {

double Curve::at(double where) const {
  if (x.empty()) return 0.0;
  if (where <= x.front() || x.size() == 1) return y.front();
  std::size_t i = 1;
  while (i + 1 < x.size() && where > x[i]) ++i;
  return y[i - 1] + (y[i] - y[i - 1]) * (where - x[i - 1]) / (x[i] - x[i - 1]);
}

double Curve::at_most_last(double where) const { return x.empty() ? 0.0 : at(std::min(where, x.back())); }

const TileCosts& MachineFigures::of_width(int width, bool half_rows) const {
  const auto find = [width](const auto& widths, const auto& costs) -> const TileCosts& {
    const auto at = std::find(widths.begin(), widths.end(), width);
    if (at == widths.end()) throw InternalError("no figures for tiles of this width");
    return costs[at - widths.begin()];
  };
  return half_rows ? find(kHalfTileWidths, half_tiles) : find(kTileWidths, tiles);
}

}  // namespace spikeloom
