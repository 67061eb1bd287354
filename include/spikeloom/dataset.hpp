// Recordings as binned spikes: what a network is trained on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace spikeloom {

/// One event of a recording: a time since the recording's declared start, and a channel.
struct Event {
  std::int64_t time_us = 0;
  std::uint32_t channel = 0;
};

/// How events become spikes: step = floor(time / step_us); events at or beyond steps * step_us are dropped and counted;
/// several events of one channel in one step make one spike, or, with `counts`, that many (the channel's id then stands
/// that often in the step's list).
struct Binning {
  std::int64_t step_us = 10'000;
  int steps = 100;
  int channel_bin = 1;  // this many neighbouring channels become one
  bool counts = false;
};

/// What binning did to the events of a data set.
struct BinningReport {
  std::uint64_t events = 0;        // as read
  std::uint64_t dropped_late = 0;  // at or beyond the last step
  std::uint64_t merged = 0;        // second and later events of a channel in a step (binary spikes only)
  std::uint64_t spikes = 0;        // what is left
};

/// Binned recordings of one split, all with the same number of steps and channels. Immutable once built.
class SpikeDataset {
 public:
  SpikeDataset(Binning binning, int recorded_channels);

  /// Appends a recording. `events` may be in any order; a channel outside is an InternalError (readers check first).
  /// `speaker` -1: unknown.
  void add(std::span<const Event> events, int label, int speaker, std::string source);

  std::size_t size() const { return labels_.size(); }
  int steps() const { return binning_.steps; }
  int channels() const { return channels_; }  // after channel_bin
  int recorded_channels() const { return recorded_channels_; }
  const Binning& binning() const { return binning_; }
  const BinningReport& report() const { return report_; }

  int label(std::size_t sample) const { return labels_[sample]; }
  int speaker(std::size_t sample) const { return speakers_[sample]; }
  /// Where the sample came from, for messages: "train.h5, sample 17".
  const std::string& source(std::size_t sample) const { return sources_[sample]; }
  std::uint64_t events(std::size_t sample) const { return events_[sample]; }
  /// End of the last event, in microseconds (before anything was dropped).
  std::int64_t duration_us(std::size_t sample) const { return durations_[sample]; }
  int largest_label() const;

  /// steps + 1 offsets into `ids(sample)`; step t of the sample has ids [offsets[t], offsets[t+1]), ascending.
  std::span<const std::uint32_t> offsets(std::size_t sample) const;
  std::span<const std::uint32_t> ids(std::size_t sample) const;

 private:
  Binning binning_;
  int recorded_channels_ = 0;
  int channels_ = 0;
  BinningReport report_;
  std::vector<int> labels_;
  std::vector<int> speakers_;
  std::vector<std::string> sources_;
  std::vector<std::uint64_t> events_;
  std::vector<std::int64_t> durations_;
  std::vector<std::uint32_t> offsets_;    // (steps + 1) per sample, relative to starts_[sample]
  std::vector<std::uint64_t> starts_{0};  // size() + 1
  std::vector<std::uint32_t> ids_;
};

/// Which part of a data set with a train/test split inside (an N-MNIST folder) is meant. A single SHD file has no
/// parts: any choice gives all of it.
enum class DataPart { train, test, all };

struct ReadOptions {
  Binning binning;
  int channels = 0;  // recorded channels; 0: what the format says (SHD layout 700, N-MNIST 2312)
  int classes = 0;   // 0: not checked; a label outside [0, classes) is a UserError
  DataPart part = DataPart::all;
  /// Called every few milliseconds of reading with how many recordings there are; what it throws ends the reading.
  std::function<void(std::size_t recordings)> progress = [](std::size_t) {};
};

/// Reads an SHD-layout HDF5 file or an N-MNIST folder. Throws UserError naming file, sample and byte or index.
SpikeDataset read_dataset(const std::filesystem::path& path, const ReadOptions& options);

/// Index sets of a split; every index list is ascending.
struct Split {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> held_out;
};

/// Holds out `fraction` of each class (at least one sample where a class has two or more), chosen by `seed`.
Split split_fraction(const SpikeDataset& data, double fraction, std::uint64_t seed);
/// Holds out fold `fold` (1 .. folds) of a stratified partition that does not depend on anything but the data set's
/// labels and `folds`.
Split split_fold(const SpikeDataset& data, int fold, int folds);
/// Holds out all samples of these speakers. Throws UserError if none or all are left.
Split split_speakers(const SpikeDataset& data, std::span<const int> speakers);

}  // namespace spikeloom
