// Who takes spikes from whom.
#include <algorithm>

#include <spikeloom/network.hpp>

namespace spikeloom {
namespace {

/// Strongly connected parts (Tarjan 1972), sources first: a part is complete once everything that it takes spikes from
/// is.
class ConnectedParts {
 public:
  explicit ConnectedParts(const NetworkSpec& network)
      : network_(network), found_(network.layers.size(), kNotFound), lowest_(found_), waiting_(found_.size(), false) {
    for (std::size_t l = 0; l < found_.size(); ++l) {
      if (found_[l] == kNotFound) visit(static_cast<int>(l));
    }
  }

  std::vector<std::vector<int>> take() { return std::move(parts_); }

 private:
  static constexpr int kNotFound = -1;

  void visit(int layer) {
    lowest_[layer] = found_[layer] = count_++;
    path_.push_back(layer);
    waiting_[layer] = true;
    for (const int source : network_.sources_of(layer)) {
      if (source < 0) continue;
      if (found_[source] == kNotFound) visit(source);
      if (waiting_[source]) lowest_[layer] = std::min(lowest_[layer], lowest_[source]);
    }
    if (lowest_[layer] == found_[layer]) close(layer);
  }

  /// Everything on the path from `first` on reaches each other.
  void close(int first) {
    const auto start = std::find(path_.begin(), path_.end(), first);
    std::vector<int> part(start, path_.end());
    path_.erase(start, path_.end());
    for (const int layer : part) waiting_[layer] = false;
    std::sort(part.begin(), part.end());
    parts_.push_back(std::move(part));
  }

  const NetworkSpec& network_;
  std::vector<int> found_;     // of each layer: as which it was found
  std::vector<int> lowest_;    // the first found that it reaches among those waiting
  std::vector<bool> waiting_;  // for its part to be complete
  std::vector<int> path_;      // those waiting, as found
  std::vector<std::vector<int>> parts_;
  int count_ = 0;
};

}  // namespace

std::vector<int> NetworkSpec::sources_of(std::size_t layer) const {
  if (layers[layer].inputs.empty()) return {static_cast<int>(layer) - 1};
  std::vector<int> sources;
  for (const std::string& name : layers[layer].inputs) {
    const auto found = name == kDataInput ? layers.end()
                                          : std::find_if(layers.begin(), layers.end(),
                                                         [&](const LayerSpec& other) { return other.name == name; });
    sources.push_back(found == layers.end() ? -1 : static_cast<int>(found - layers.begin()));
  }
  return sources;
}

int NetworkSpec::inputs_of(std::size_t layer) const {
  int sum = 0;
  for (const int source : sources_of(layer)) sum += size_of(source);
  return sum;
}

std::vector<std::vector<int>> NetworkSpec::connected_parts() const { return ConnectedParts(*this).take(); }

}  // namespace spikeloom
