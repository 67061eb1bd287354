// A folder of recordings as spikes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spikeloom {

class ProgressListener;

struct EncodeFolderOptions {
  std::filesystem::path folder;              // holds files named label_speaker_index.wav (or .flac): "7_jackson_0.wav"
  std::filesystem::path out;                 // the HDF5 file to write
  std::optional<std::pair<int, int>> index;  // keep only indices first .. last, both included
  std::vector<std::string> speakers;         // keep only these speakers; empty: all
  /// Silence put before and after each recording. The ear's Hann window covers the whole recording, so it takes away
  /// the first and last sounds of one that is cut close to its word.
  int silence_ms = 0;
  std::uint64_t seed = 1;  // of the auditory nerve's randomness
  int threads = 0;         // 0: all cores
};

/// Encodes the recordings with the inner-ear model of SHD (InnerEar) and writes them in SHD's layout, in the order of
/// label, speaker, index. Loudness is normalised, so quiet and loud recordings are alike; a silent recording becomes an
/// empty sample, with a warning.
///
/// A speaker's number is its place among the folder's sorted speaker names, whatever the filters keep, and a sample's
/// spikes depend on the file's name and content and on the seed alone: sets that are filtered differently from one
/// folder agree. The keys are the labels as numbers.
///
/// Files with other extensions are skipped, with a note. Throws UserError naming the file (a name of another form,
/// damaged audio), the unknown speaker and those known, or the filters that leave nothing; ResourceError.
void encode_folder(const EncodeFolderOptions& options, ProgressListener& listener);

}  // namespace spikeloom
