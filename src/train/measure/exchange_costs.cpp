#include "train/measure/exchange_costs.hpp"

#include <algorithm>
#include <bit>

#include <spikeloom/error.hpp>
#include "core/worker_team.hpp"
#include "engine/step_exchange.hpp"
#include "train/measure/tile_case.hpp"
#include "train/measure/timing.hpp"

namespace spikeloom {
namespace {

using measure::best_wall_ns;
using measure::random_spikes;

constexpr int kWidth = 64;
// So many that starting a region does not count, and so few that on a busy machine some regions are left in peace.
constexpr int kMeetings = 400;
constexpr int kSteps = 40;
constexpr int kPatterns = 8;  // steps that differ, taken in turn
constexpr float kFromAbove = 0.5f;

/// The steps of one layer as its workers take them, with everything but the sums.
class Steps {
 public:
  Steps(const ExchangeCase& layer, WorkerTeam& team)
      : team_(team), tiles_((layer.neurons + kWidth - 1) / kWidth), samples_(layer.samples), workers_(team.size()) {
    std::size_t most = 0;
    for (int i = 0; i < kPatterns; ++i) {
      spikes_.push_back(random_spikes(samples_, 1, layer.neurons, layer.activity * layer.neurons, i));
      active_.push_back(
          random_spikes(samples_, 1, layer.neurons, layer.active_fraction * layer.neurons, kPatterns + i));
      most = std::max(most, active_.back().ids.size());
      spiked_.push_back(masks_of(spikes_.back()));
      for (const std::uint64_t mask : masks_of(active_.back())) counts_.push_back(std::popcount(mask));
    }
    from_above_.assign(most, kFromAbove);
    exchange_.reserve_spikes(tiles_, samples_);
    exchange_.reserve_partials(tiles_, most);
    for (Worker& worker : workers_) {
      worker.lists.offsets.assign(samples_ + 1, 0);
      worker.gradient.resize(most);
    }
    // Neighbouring tiles to one worker, as make_plan does it.
    for (int tile = 0; tile < tiles_; ++tile) workers_[tile * team.size() / tiles_].tiles.push_back(tile);
  }

  double meet_ns() {
    return step_ns(
        kMeetings, [](int, int) {}, [](int, int) {});
  }

  double list_ns() {
    const double ns = step_ns(
        kSteps,
        [&](int tile, int step) {
          std::copy_n(spiked_[step % kPatterns].data() + static_cast<std::size_t>(tile) * samples_, samples_,
                      exchange_.spiked(tile, step));
        },
        [&](int worker, int step) { list_spikes(exchange_, step, tiles_, kWidth, samples_, workers_[worker].lists); });
    for (const Worker& worker : workers_) {
      if (worker.lists.ids != last(spikes_).ids || worker.lists.offsets != last(spikes_).offsets)
        throw InternalError("the spikes of a step were not listed as they were told");
    }
    return ns;
  }

  double gather_ns() {
    const double ns = step_ns(
        kSteps,
        [&](int tile, int step) {
          std::fill_n(exchange_.partials(tile, step), active_[step % kPatterns].ids.size(), 1.0f);
        },
        [&](int worker, int step) { gather(workers_[worker], active_[step % kPatterns], step); });
    std::size_t gathered = 0;
    for (const Worker& worker : workers_) {
      gathered += worker.gathered;
      for (std::size_t i = 0; i < worker.gathered; ++i) {
        if (worker.gradient[i] != kFromAbove + static_cast<float>(tiles_))
          throw InternalError("the parts of a gradient were not added up");
      }
    }
    if (gathered != last(active_).ids.size()) throw InternalError("not every active neuron has a gradient");
    return ns;
  }

 private:
  struct alignas(kCacheLine) Worker {
    std::vector<int> tiles;
    SpikeLists lists;
    std::vector<float> gradient;
    AddedParts added;
    std::size_t gathered = 0;
  };

  /// Columns of the listed neurons: (tiles, samples).
  std::vector<std::uint64_t> masks_of(const SpikeLists& lists) const {
    std::vector<std::uint64_t> masks(static_cast<std::size_t>(tiles_) * samples_);
    for (int sample = 0; sample < samples_; ++sample) {
      for (std::uint32_t e = lists.offsets[sample]; e < lists.offsets[sample + 1]; ++e)
        masks[lists.ids[e] / kWidth * samples_ + sample] |= std::uint64_t{1} << lists.ids[e] % kWidth;
    }
    return masks;
  }

  static const SpikeLists& last(const std::vector<SpikeLists>& patterns) { return patterns[(kSteps - 1) % kPatterns]; }

  /// Every worker: tell(tile, step) for its tiles, the meeting, hear(worker, step).
  template <class Tell, class Hear>
  double step_ns(int steps, const Tell& tell, const Hear& hear) {
    return best_wall_ns([&] {
             team_.run([&](int worker) {
               for (int step = 0; step < steps; ++step) {
                 for (const int tile : workers_[worker].tiles) tell(tile, step);
                 if (!team_.meet()) return;
                 hear(worker, step);
               }
             });
           }) /
           steps;
  }

  void gather(Worker& own, const SpikeLists& active, int step) {
    float* gradient = own.gradient.data();
    own.added.add(exchange_, step, tiles_, active.ids.size());
    for (const int tile : own.tiles) {
      const auto first = static_cast<std::uint32_t>(tile * kWidth);
      for (int sample = 0; sample < samples_; ++sample) {
        const int count = counts_[(step % kPatterns * tiles_ + tile) * samples_ + sample];
        if (count == 0) continue;
        const float* sums = own.added.data() + first_event(active, sample, first);
        for (int i = 0; i < count; ++i) *gradient++ = from_above_[i] + sums[i];
      }
    }
    own.gathered = gradient - own.gradient.data();
  }

  WorkerTeam& team_;
  int tiles_;
  int samples_;
  std::vector<SpikeLists> spikes_, active_;         // per pattern, (samples)
  std::vector<std::vector<std::uint64_t>> spiked_;  // as the kernels tell them
  std::vector<int> counts_;                         // (patterns, tiles, samples): of active_
  std::vector<float> from_above_;
  StepExchange exchange_;
  std::vector<Worker> workers_;
};

}  // namespace

std::vector<ExchangeTiming> time_exchange(const ExchangeCase& layer, int most) {
  std::vector<ExchangeTiming> timings;
  for (int threads = 1;; threads = std::min(2 * threads, most)) {
    WorkerTeam team(threads);
    Steps steps(layer, team);
    ExchangeTiming& timing = timings.emplace_back();
    timing.threads = threads;
    timing.barrier = steps.meet_ns();
    timing.list_spikes = std::max(0.0, steps.list_ns() - timing.barrier);
    timing.gather_gradients = std::max(0.0, steps.gather_ns() - timing.barrier);
    if (threads == most) return timings;
  }
}

}  // namespace spikeloom
