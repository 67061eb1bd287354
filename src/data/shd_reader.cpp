#include "data/shd_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <spikeloom/error.hpp>
#include "data/hdf5_file.hpp"

namespace spikeloom {
namespace {

constexpr std::size_t kSlab = 32;  // recordings read at a time: about 2 MB for SHD
constexpr int kLargestNumber = std::numeric_limits<std::uint16_t>::max();

/// One number per recording (labels, speakers), whole and within [0, limit].
std::vector<int> read_numbers(const Hdf5Reader& file, const std::string& name, std::size_t samples, int limit,
                              const std::string& shown) {
  const Hdf5Array array = file.array(name);
  if (array.sequences() || array.kind() == Hdf5Kind::other)
    throw UserError(fmt::format("{}: {}: not an array of numbers", shown, name));
  if (array.size() != samples) {
    throw UserError(
        fmt::format("{}: {}: {} entries for {} recordings in spikes/times", shown, name, array.size(), samples));
  }
  std::vector<int> result;
  result.reserve(samples);
  const auto add = [&](auto value) {
    if (!(value >= 0 && value <= limit) || static_cast<decltype(value)>(static_cast<int>(value)) != value) {
      throw UserError(fmt::format("{}: {}, sample {}: {}; allowed: whole numbers from 0 to {}", shown, name,
                                  result.size(), value, limit));
    }
    result.push_back(static_cast<int>(value));
  };
  if (array.kind() == Hdf5Kind::integer) {
    for (const std::int64_t value : array.integers(0, samples)) add(value);
  } else {
    for (const double value : array.reals(0, samples)) add(value);
  }
  return result;
}

Hdf5Array sequences(const Hdf5Reader& file, const std::string& name, Hdf5Kind kind, const std::string& shown) {
  Hdf5Array array = file.array(name);
  if (!array.sequences())
    throw UserError(
        fmt::format("{}: {}: not of variable length; SHD's layout has one list per recording", shown, name));
  if (array.kind() != kind) {
    throw UserError(
        fmt::format("{}: {}: not {}", shown, name,
                    kind == Hdf5Kind::floating ? "floating-point numbers (seconds)" : "whole numbers (channels)"));
  }
  return array;
}

class SlabConverter {
 public:
  SlabConverter(const ShdReadOptions& options, const Hdf5Array::Slab<double>& times,
                const Hdf5Array::Slab<std::int64_t>& units)
      : options_(options), times_(times), units_(units) {}

  /// Recording number `row` of the slab, which is `sample` in the file.
  void convert(std::size_t row, std::size_t sample, std::vector<Event>& events) const {
    const std::size_t time_begin = row == 0 ? 0 : times_.ends[row - 1];
    const std::size_t unit_begin = row == 0 ? 0 : units_.ends[row - 1];
    const std::size_t count = times_.ends[row] - time_begin;
    if (units_.ends[row] - unit_begin != count) {
      throw UserError(fmt::format("{}: sample {}: {} times but {} units; one each per event is needed", options_.shown,
                                  sample, count, units_.ends[row] - unit_begin));
    }
    events.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double time = times_.values[time_begin + i];
      const std::int64_t unit = units_.values[unit_begin + i];
      if (!(time >= 0.0 && time <= kLongestSeconds)) {
        throw UserError(fmt::format("{}: spikes/times, sample {}, event {}: {} s; allowed: 0 to {:.0f}", options_.shown,
                                    sample, i, time, kLongestSeconds));
      }
      if (unit < 0 || unit >= options_.channels) {
        throw UserError(fmt::format("{}: spikes/units, sample {}, event {}: unit {}; allowed: 0 to {}", options_.shown,
                                    sample, i, unit, options_.channels - 1));
      }
      events[i] = {std::llround(time * 1e6), static_cast<std::uint32_t>(unit)};
    }
  }

 private:
  const ShdReadOptions& options_;
  const Hdf5Array::Slab<double>& times_;
  const Hdf5Array::Slab<std::int64_t>& units_;
};

void read_checked(const std::filesystem::path& path, const ShdReadOptions& options, const ShdSink& sink) {
  const Hdf5Reader file(path);
  for (const char* name : {"spikes/times", "spikes/units", "labels"}) {
    if (!file.has(name)) {
      throw UserError(
          fmt::format("{}: {}: missing; SHD's layout has spikes/times, spikes/units and labels", options.shown, name));
    }
  }
  Hdf5Array times = sequences(file, "spikes/times", Hdf5Kind::floating, options.shown);
  Hdf5Array units = sequences(file, "spikes/units", Hdf5Kind::integer, options.shown);
  const std::size_t samples = times.size();
  if (units.size() != samples) {
    throw UserError(fmt::format("{}: spikes/units: {} entries for {} recordings in spikes/times", options.shown,
                                units.size(), samples));
  }
  const int largest_label = options.classes > 0 ? options.classes - 1 : kLargestNumber;
  const std::vector<int> labels = read_numbers(file, "labels", samples, largest_label, options.shown);
  std::vector<int> speakers(samples, -1);
  if (file.has("extra/speaker")) speakers = read_numbers(file, "extra/speaker", samples, kLargestNumber, options.shown);

  Hdf5Array::Slab<double> slab_times;
  Hdf5Array::Slab<std::int64_t> slab_units;
  std::vector<Event> events;
  const SlabConverter converter(options, slab_times, slab_units);
  for (std::size_t begin = 0; begin < samples; begin += kSlab) {
    const std::size_t count = std::min(kSlab, samples - begin);
    try {
      times.read(begin, count, slab_times);
      units.read(begin, count, slab_units);
    } catch (const Hdf5Error& error) {
      throw UserError(
          fmt::format("{}: samples {} to {}: damaged: {}", options.shown, begin, begin + count - 1, error.what()));
    }
    for (std::size_t row = 0; row < count; ++row) {
      converter.convert(row, begin + row, events);
      sink(events, labels[begin + row], speakers[begin + row]);
    }
  }
}

}  // namespace

void read_shd(const std::filesystem::path& path, const ShdReadOptions& options, const ShdSink& sink) {
  try {
    read_checked(path, options, sink);
  } catch (const Hdf5Error& error) {
    throw UserError(fmt::format("{}: damaged, or not in SHD's layout: {}", options.shown, error.what()));
  }
}

}  // namespace spikeloom
