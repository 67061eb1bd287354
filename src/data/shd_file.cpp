#include "data/shd_file.hpp"

#include <fmt/format.h>

#include <limits>
#include <new>
#include <optional>

#include <spikeloom/error.hpp>
#include "data/durable_file.hpp"
#include "data/float16.hpp"
#include "data/hdf5_file.hpp"

namespace spikeloom {
namespace {

constexpr std::size_t kSlab = 256;  // recordings handed to HDF5 at a time
constexpr int kUint16Max = std::numeric_limits<std::uint16_t>::max();

std::span<const std::byte> part(const std::vector<std::uint16_t>& values, std::size_t begin, std::size_t end) {
  return std::as_bytes(std::span(values).subspan(begin, end - begin));
}

}  // namespace

struct ShdWriter::State {
  State(const std::filesystem::path& path, ShdWriterOptions chosen) : options(chosen), file(path) {
    if (options.channels < 1 || options.channels > kUint16Max + 1)
      throw InternalError("SHD layout: channels outside 1 to 65536");
    hdf5.emplace();
    hdf5->create_group("spikes");
    times.emplace(hdf5->create_sequences("spikes/times", Hdf5Type::float16));
    units.emplace(hdf5->create_sequences("spikes/units", Hdf5Type::uint16));
  }

  /// Hands the collected recordings to HDF5.
  void flush() {
    std::vector<std::span<const std::byte>> time_parts;
    std::vector<std::span<const std::byte>> unit_parts;
    for (std::size_t begin = 0; const std::size_t end : slab_ends) {
      time_parts.push_back(part(slab_times, begin, end));
      unit_parts.push_back(part(slab_units, begin, end));
      begin = end;
    }
    times->append(time_parts);
    units->append(unit_parts);
    slab_times.clear();
    slab_units.clear();
    slab_ends.clear();
  }

  void add_event(double time_s, std::uint32_t channel) {
    if (!(time_s >= 0.0 && time_s <= kFloat16Max)) {
      throw InternalError(fmt::format("SHD layout: time {} s outside 0 to {}", time_s, kFloat16Max));
    }
    if (channel >= static_cast<std::uint32_t>(options.channels)) {
      throw InternalError(fmt::format("SHD layout: channel {} of {}", channel, options.channels));
    }
    slab_times.push_back(float16_bits(time_s));
    slab_units.push_back(static_cast<std::uint16_t>(channel));
  }

  void end_recording(int label, int speaker) {
    if (label < 0 || label > kUint16Max || speaker < 0 || speaker > kUint16Max) {
      throw InternalError(
          fmt::format("SHD layout: label {} or speaker {} outside 0 to {}", label, speaker, kUint16Max));
    }
    labels.push_back(static_cast<std::uint16_t>(label));
    speakers.push_back(static_cast<std::uint16_t>(speaker));
    slab_ends.push_back(slab_times.size());
    if (slab_ends.size() == kSlab) flush();
  }

  ShdWriterOptions options;
  DurableFile file;
  std::optional<Hdf5Writer> hdf5;
  std::optional<Hdf5Sequences> times;
  std::optional<Hdf5Sequences> units;
  std::vector<std::uint16_t> labels;
  std::vector<std::uint16_t> speakers;
  std::vector<std::uint16_t> slab_times;
  std::vector<std::uint16_t> slab_units;
  std::vector<std::size_t> slab_ends;
};

namespace {

/// Runs `work`; in a file kept in memory, only memory can be what HDF5 lacks.
template <class Work>
void with_resources(const std::filesystem::path& path, Work&& work) {
  try {
    work();
  } catch (const Hdf5Error& error) {
    throw ResourceError(fmt::format("{}: no memory to put the file together: {}", path.string(), error.what()));
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format("{}: no memory to put the file together", path.string()));
  }
}

}  // namespace

ShdWriter::ShdWriter(const std::filesystem::path& path, ShdWriterOptions options) {
  with_resources(path, [&] { state_ = std::make_unique<State>(path, options); });
}

ShdWriter::~ShdWriter() = default;

std::size_t ShdWriter::size() const { return state_->labels.size(); }

void ShdWriter::add(std::span<const Event> events, int label, int speaker) {
  with_resources(state_->file.path(), [&] {
    for (const Event& event : events) state_->add_event(static_cast<double>(event.time_us) * 1e-6, event.channel);
    state_->end_recording(label, speaker);
  });
}

void ShdWriter::add(std::span<const double> times_s, std::span<const std::uint16_t> units, int label, int speaker) {
  if (times_s.size() != units.size()) throw InternalError("SHD layout: as many times as units are needed");
  with_resources(state_->file.path(), [&] {
    for (std::size_t i = 0; i < times_s.size(); ++i) state_->add_event(times_s[i], units[i]);
    state_->end_recording(label, speaker);
  });
}

void ShdWriter::finish(const std::vector<std::string>& keys, const std::vector<ShdSpeaker>& speakers) {
  State& state = *state_;
  with_resources(state.file.path(), [&] {
    state.flush();
    state.times.reset();
    state.units.reset();
    state.hdf5->write("labels", state.labels);
    state.hdf5->create_group("extra");
    state.hdf5->write("extra/speaker", state.speakers);
    state.hdf5->write_strings("extra/keys", keys);
    std::vector<std::string> gender;
    std::vector<std::uint16_t> age;
    std::vector<std::uint16_t> body_height;
    for (const ShdSpeaker& speaker : speakers) {
      gender.push_back(speaker.gender);
      age.push_back(speaker.age);
      body_height.push_back(speaker.body_height);
    }
    state.hdf5->create_group("extra/meta_info");
    state.hdf5->write_strings("extra/meta_info/gender", gender);
    state.hdf5->write("extra/meta_info/age", age);
    state.hdf5->write("extra/meta_info/body_height", body_height);
    state.file.write(state.hdf5->image());
    state.file.commit();
  });
}

}  // namespace spikeloom
