// From sound to spikes on 700 channels: the inner-ear model of the Spiking Heidelberg Digits (Cramer et al. 2020).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <spikeloom/dataset.hpp>

namespace spikeloom {

class WorkerTeam;
struct EarTransform;

/// Transfer functions of the basilar membrane at all channels, and filters: computed once, shared by all ears.
struct EarTables;
std::shared_ptr<const EarTables> make_ear_tables(WorkerTeam& team);

/// One ear per thread; the tables are shared.
///
/// The model: loudness set to an RMS of 0.3; a Hann window over the whole recording; membrane velocity at 700 places
/// (BasilarMembrane) at 24 kHz; a hair cell per place (Meddis); 40 nerve fibres, each refractory for 1 ms; one leaky
/// integrate-and-fire bushy cell. Channel 0 has the highest frequency.
class InnerEar {
 public:
  static constexpr int kChannels = 700;
  static constexpr int kSampleRate = 48'000;  // what the model's constants want; recordings are resampled to it

  explicit InnerEar(std::shared_ptr<const EarTables> tables);
  ~InnerEar();
  InnerEar(InnerEar&&) noexcept;
  InnerEar& operator=(InnerEar&&) noexcept;

  /// Events in order of time, then channel; times are multiples of 1/24000 s rounded to microseconds, below the
  /// recording's duration. The draws of the fibres are a function of (seed, number) alone. A recording that is silent
  /// throughout, or shorter than 2 samples, gives no events.
  std::vector<Event> encode(std::span<const float> samples, int sample_rate, std::uint64_t seed, std::uint64_t number);

 private:
  struct Workspace;
  std::shared_ptr<const EarTables> tables_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace spikeloom
