#include "data/encode/ordered_encoding.hpp"

#include <algorithm>
#include <memory>
#include <mutex>

#include "core/worker_team.hpp"
#include "data/encode/inner_ear.hpp"

namespace spikeloom {
namespace {

// Events waiting to be taken are 16 bytes each, some 120 KB a recording; at the end of a round, threads idle for half a
// recording on average.
constexpr std::size_t kRoundPerThread = 32;

/// 14 MB and half a second, for all data sets that this process makes.
std::shared_ptr<const EarTables> shared_tables(WorkerTeam& team) {
  static std::mutex mutex;
  static std::shared_ptr<const EarTables> tables;
  const std::lock_guard lock(mutex);
  if (!tables) tables = make_ear_tables(team);
  return tables;
}

}  // namespace

void encode_in_order(std::size_t count, int threads,
                     const std::function<EncodedRecording(std::size_t, InnerEar&)>& encode,
                     const std::function<void(std::size_t, const EncodedRecording&)>& take) {
  WorkerTeam team(threads > 0 ? threads : std::max(1, available_cores()));
  const auto tables = shared_tables(team);
  std::vector<InnerEar> ears;
  for (int worker = 0; worker < team.size(); ++worker) ears.emplace_back(tables);
  std::vector<EncodedRecording> results(std::min(count, kRoundPerThread * static_cast<std::size_t>(team.size())));
  for (std::size_t first = 0; first < count; first += results.size()) {
    const std::size_t round = std::min(results.size(), count - first);
    team.for_each(round, [&](std::size_t i, int worker) {
      results[i] = encode(first + i, ears[static_cast<std::size_t>(worker)]);
    });
    for (std::size_t i = 0; i < round; ++i) take(first + i, results[i]);
  }
}

}  // namespace spikeloom
