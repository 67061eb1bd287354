#include "data/encode/inner_ear.hpp"

#include <kiss_fftr.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "core/random.hpp"
#include "core/worker_team.hpp"
#include "data/encode/basilar_membrane.hpp"
#include "data/encode/inner_ear_kernel.hpp"
#include "data/encode/resample.hpp"

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

constexpr int kGroups = (InnerEar::kChannels + kEarGroup - 1) / kEarGroup;
constexpr double kLoudness = 0.3;  // RMS
// Above this multiple of its resonance a place's response is more than 60 dB below its peak.
constexpr double kBand = 1.45;
constexpr int kCoarsest = 16;  // largest decimation
// Table spacing. Between bins the transfer function is interpolated linearly, which errs by (2 pi spacing t)^2 / 8 for
// a part of the response that is t away from time 0: 0.1 % and less at these spacings (t is 2 ms at 2 kHz, 60 ms at 100
// Hz).
constexpr double kFullSpacing = kEarRate / 4096.0;
constexpr int kShortestTransform = 2048;

using Complex = std::complex<double>;

double place_of(int channel, const BasilarMembrane& membrane) {
  return membrane.length * channel / (InnerEar::kChannels - 1);
}

/// The membrane moves slowly where it is tuned low: 1/16 to 1/2 of the rate is enough if the band stays below a quarter
/// of the lower rate.
int decimation_for(double band_hz) {
  int decimation = kCoarsest;
  while (decimation > 1 && band_hz > kEarRate / (4.0 * decimation)) decimation /= 2;
  return decimation;
}

EarTable make_table(int group, const BasilarMembrane& membrane) {
  const int first = group * kEarGroup;
  const double band = std::min(kBand * membrane.resonance_hz(place_of(first, membrane)), double{kEarRate});
  EarTable table;
  table.decimation = decimation_for(band);
  table.spacing_hz = static_cast<float>(kFullSpacing / table.decimation);
  table.bins = static_cast<int>(band / table.spacing_hz) + 3;
  table.values = AlignedBuffer<float>(static_cast<std::size_t>(table.bins) * 2 * kEarGroup);
  for (int bin = 0; bin < table.bins; ++bin) {
    // SHD's encoder spreads its bins from 1 Hz, not 0, to 24 kHz.
    const double hz = 1.0 + bin * double{table.spacing_hz} * (kEarRate - 1.0) / kEarRate;
    const BasilarMembraneAtFrequency at(membrane, 2.0 * std::numbers::pi * hz);
    float* row = table.values.data() + static_cast<std::size_t>(bin) * 2 * kEarGroup;
    for (int i = 0; i < std::min(kEarGroup, InnerEar::kChannels - first); ++i) {
      const Complex velocity = at.velocity(place_of(first + i, membrane));
      row[i] = static_cast<float>(velocity.real());
      row[kEarGroup + i] = static_cast<float>(velocity.imag());
    }
  }
  return table;
}

/// Taps [phase][kEarTaps] of a sinc under a Kaiser window. The band ends at a quarter of the decimated rate and its
/// images begin at three quarters, which leaves 65 dB for eight taps.
std::vector<float> make_interpolation(int decimation) {
  constexpr double kBeta = 6.2;
  std::vector<float> taps(static_cast<std::size_t>(decimation) * kEarTaps);
  for (int phase = 0; phase < decimation; ++phase) {
    for (int tap = 0; tap < kEarTaps; ++tap) {
      const double x = static_cast<double>(phase) / decimation - (tap - (kEarTaps / 2 - 1));
      const double edge = x / (kEarTaps / 2);
      const double window = std::abs(edge) >= 1.0 ? 0.0
                                                  : std::cyl_bessel_i(0.0, kBeta * std::sqrt(1.0 - edge * edge)) /
                                                        std::cyl_bessel_i(0.0, kBeta);
      const double sinc = x == 0.0 ? 1.0 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
      taps[static_cast<std::size_t>(phase * kEarTaps + tap)] = static_cast<float>(sinc * window);
    }
  }
  return taps;
}

/// The smallest of 4, 5 or 6 times a power of two that holds `steps`; decimations divide it.
int transform_length(int steps) {
  int power = kShortestTransform / 4;
  while (6 * power < steps) power *= 2;
  for (const int factor : {4, 5, 6})
    if (factor * power >= steps) return factor * power;
  throw InternalError("transform length");
}

/// RMS to kLoudness, then the Hann window; false if the recording is silent.
bool normalise(std::vector<float>& samples) {
  double power = 0.0;
  for (const float x : samples) power += double{x} * x;
  if (!(power > 0.0)) return false;
  const double gain = kLoudness / std::sqrt(power / static_cast<double>(samples.size()));
  const std::size_t half = samples.size() / 2;
  const double turn = half > 0 ? 2.0 * std::numbers::pi / static_cast<double>(2 * half - 1) : 0.0;
  for (float& x : samples) x = static_cast<float>(x * gain);
  for (std::size_t i = 0; i < half; ++i) {
    const auto window = static_cast<float>(0.5 - 0.5 * std::cos(turn * static_cast<double>(i)));
    samples[i] *= window;
    samples[samples.size() - 1 - i] *= window;
  }
  return true;
}

}  // namespace

struct EarTables {
  std::vector<EarTable> groups;
  std::map<int, std::vector<float>> interpolation;  // by decimation
};

std::shared_ptr<const EarTables> make_ear_tables(WorkerTeam& team) {
  auto tables = std::make_shared<EarTables>();
  const BasilarMembrane membrane;
  tables->groups.resize(kGroups);
  team.for_each(kGroups,
                [&](std::size_t group, int) { tables->groups[group] = make_table(static_cast<int>(group), membrane); });
  for (int decimation = 1; decimation <= kCoarsest; decimation *= 2)
    tables->interpolation[decimation] = make_interpolation(decimation);
  return tables;
}

EarTransform::EarTransform(int size) : length(size) {
  int left = size;
  const auto append = [&](int radix) {
    passes.push_back({radix, left, twiddles.size()});
    const int part = left / radix;
    for (int j = 0; j < part; ++j) {
      for (int m = 1; m < radix; ++m) {
        const double angle = 2.0 * std::numbers::pi * static_cast<double>(j) * m / left;
        twiddles.push_back(static_cast<float>(std::cos(angle)));
        twiddles.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    left = part;
  };
  for (const int radix : {5, 3, 4, 2})
    while (left % radix == 0) append(radix);
  if (left != 1) throw InternalError("transform length has a factor above 5");

  row_of.resize(static_cast<std::size_t>(length));
  for (int time = 0; time < length; ++time) {
    int rest = time;
    int row = 0;
    for (const Pass& pass : passes) {
      row += rest % pass.radix * (pass.length / pass.radix);
      rest /= pass.radix;
    }
    row_of[static_cast<std::size_t>(time)] = static_cast<std::uint32_t>(row);
  }
}

std::size_t ear_event_bound(int steps) {
  return static_cast<std::size_t>(kEarGroup) * (static_cast<std::size_t>(steps) / 24 + 2);
}

struct InnerEar::Workspace {
  struct FreeTransform {
    void operator()(kiss_fftr_state* state) const { kiss_fftr_free(state); }
  };

  const Resampler& resampler(int from) { return resamplers.try_emplace(from, from, kSampleRate).first->second; }
  const EarTransform& transform(int length) { return transforms.try_emplace(length, length).first->second; }
  kiss_fftr_state* forward(int length) {
    auto& state = forwards[length];
    if (!state) state.reset(kiss_fftr_alloc(length, 0, nullptr, nullptr));
    if (!state) throw std::bad_alloc();
    return state.get();
  }

  std::map<int, Resampler> resamplers;
  std::map<int, EarTransform> transforms;
  std::map<int, std::unique_ptr<kiss_fftr_state, FreeTransform>> forwards;
  std::vector<kiss_fft_cpx> spectrum;
  AlignedBuffer<float> rows;
  std::vector<std::uint32_t> events;
};

InnerEar::InnerEar(std::shared_ptr<const EarTables> tables)
    : tables_(std::move(tables)), workspace_(std::make_unique<Workspace>()) {}
InnerEar::~InnerEar() = default;
InnerEar::InnerEar(InnerEar&&) noexcept = default;
InnerEar& InnerEar::operator=(InnerEar&&) noexcept = default;

std::vector<Event> InnerEar::encode(std::span<const float> recorded, int sample_rate, std::uint64_t seed,
                                    std::uint64_t number) {
  Workspace& work = *workspace_;
  std::vector<float> sound = work.resampler(sample_rate)(recorded);
  if (sound.size() < 2 || !normalise(sound)) return {};
  const int steps = static_cast<int>(sound.size() / 2) + 1;
  const int length = transform_length(steps);

  sound.resize(2 * static_cast<std::size_t>(length), 0.0F);
  work.spectrum.resize(static_cast<std::size_t>(length) + 1);
  kiss_fftr(work.forward(2 * length), sound.data(), work.spectrum.data());
  const float factor = 0.5F / static_cast<float>(length);
  for (kiss_fft_cpx& bin : work.spectrum) bin = {bin.r * factor, bin.i * factor};

  const RandomStream stream(seed, "inner ear", number);
  EarJob job;
  job.spectrum = &work.spectrum[0].r;
  job.hz_per_bin = static_cast<float>(kEarRate) / static_cast<float>(length);
  // Beyond the recording's own band there is only what the resampling filter leaves of its images.
  constexpr double kFilterSkirt = 1.15;
  job.spectrum_bins = static_cast<int>(std::min(0.5 * sample_rate * kFilterSkirt, double{kEarRate}) / job.hz_per_bin);
  job.steps = steps;
  job.key = {stream.bits_at(0), stream.bits_at(1)};
  work.rows.reserve_discard(static_cast<std::size_t>(length) * kEarGroup);
  job.rows = work.rows.data();
  work.events.resize(ear_event_bound(steps) * kGroups);
  std::size_t count = 0;
  for (int group = 0; group < kGroups; ++group) {
    job.table = &tables_->groups[static_cast<std::size_t>(group)];
    job.transform = &work.transform(length / job.table->decimation);
    job.interpolation = tables_->interpolation.at(job.table->decimation).data();
    job.first_channel = group * kEarGroup;
    job.events = work.events.data() + count;
    count += run_ear_group(job);
  }

  std::sort(work.events.begin(), work.events.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<Event> events;
  events.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t channel = work.events[i] & ((1U << kEarChannelBits) - 1);
    if (channel >= kChannels) continue;  // the last group is not full
    const std::int64_t step = work.events[i] >> kEarChannelBits;
    events.push_back({(step * 1'000'000 + kEarRate / 2) / kEarRate, channel});
  }
  return events;
}

}  // namespace spikeloom
