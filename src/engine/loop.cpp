#include "engine/loop.hpp"

#include <algorithm>

#include <spikeloom/error.hpp>

namespace spikeloom {

Loop::Loop(const NetworkSpec& network, const std::vector<int>& part, std::vector<LayerState>& layers)
    : members_(part.size()), exchanges_(static_cast<int>(part.size())) {
  for (int m = 0; m < size(); ++m) {
    LoopMember& member = members_[m];
    member.layer = &layers[part[m]];
    if (member.layer->shared_tiles() > 0)
      throw InternalError("the plan splits tiles of layer " + member.layer->spec().name + ", which need each other");
    int first = 0;
    for (const int source : network.sources_of(part[m])) {
      const int count = network.size_of(source);
      const auto inner = std::find(part.begin(), part.end(), source);
      if (inner != part.end()) {
        member.links.push_back(
            {static_cast<int>(inner - part.begin()), NetworkSpec::lag_of(source, part[m]), first, false, exchanges_++});
      } else if (!member.from_outside.empty() &&
                 member.from_outside.back().first + member.from_outside.back().count == first) {
        member.from_outside.back().count += count;
      } else {
        member.from_outside.push_back({first, count});
      }
      first += count;
    }
    if (member.layer->recurrent()) {
      member.links.push_back({m, 1, 0, true, m});
      member.receivers.push_back({m, static_cast<int>(member.links.size()) - 1});
    }
  }
  for (int m = 0; m < size(); ++m) {
    for (int k = 0; k < members_[m].inner_links(); ++k)
      members_[members_[m].links[k].source].receivers.push_back({m, k});
  }
}

}  // namespace spikeloom
