#include "data/encode/encode_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

#include "core/progress.hpp"
#include "data/encode/audio_file.hpp"
#include "data/encode/inner_ear.hpp"
#include "data/encode/ordered_encoding.hpp"
#include "data/shd_file.hpp"

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

constexpr int kHighestLabel = 9'999;
constexpr int kHighestIndex = 999'999'999;
constexpr int kLongestSilence = 10'000;  // ms

struct NamedRecording {
  int label = 0;
  std::string speaker;
  int index = 0;
  fs::path path;
  bool operator<(const NamedRecording& other) const {
    return std::tie(label, speaker, index, path) < std::tie(other.label, other.speaker, other.index, other.path);
  }
};

bool parse_number(std::string_view text, int highest, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value >= 0 && value <= highest &&
         text.front() != '-';
}

NamedRecording parse_name(const fs::path& path) {
  const std::string stem = path.stem().string();
  const std::size_t first = stem.find('_');
  const std::size_t last = stem.rfind('_');
  NamedRecording file;
  file.path = path;
  if (first == std::string::npos || last <= first + 1 || first == 0 || last + 1 == stem.size() ||
      !parse_number(std::string_view(stem).substr(0, first), kHighestLabel, file.label) ||
      !parse_number(std::string_view(stem).substr(last + 1), kHighestIndex, file.index))
    throw UserError(
        fmt::format("{}: the name must be label_speaker_index{}, with a label of 0 .. {} and an index of 0 .. {}, like "
                    "7_jackson_0.wav",
                    path.string(), path.extension().string(), kHighestLabel, kHighestIndex));
  file.speaker = stem.substr(first + 1, last - first - 1);
  return file;
}

bool is_audio(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return extension == ".wav" || extension == ".flac";
}

std::vector<NamedRecording> list_recordings(const fs::path& folder, ProgressListener& listener) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw UserError(fmt::format("{}: not a folder", folder.string()));
  std::vector<NamedRecording> files;
  std::size_t skipped = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->is_directory() || !is_audio(entry->path())) {
      ++skipped;
      continue;
    }
    files.push_back(parse_name(entry->path()));
  }
  if (error) throw UserError(fmt::format("{}: cannot be read ({})", folder.string(), error.message()));
  if (files.empty()) throw UserError(fmt::format("{}: holds no .wav or .flac files", folder.string()));
  if (skipped > 0)
    listener.note(fmt::format("{}: skipped {} entries that are not .wav or .flac files", folder.string(), skipped));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> speakers_of(const std::vector<NamedRecording>& files) {
  std::set<std::string> names;
  for (const NamedRecording& file : files) names.insert(file.speaker);
  return {names.begin(), names.end()};
}

void check_filters(const EncodeFolderOptions& options, const std::vector<std::string>& speakers) {
  if (options.threads < 0)
    throw UserError(fmt::format("threads = {}, but must be 0 (all cores) or more", options.threads));
  if (options.silence_ms < 0 || options.silence_ms > kLongestSilence)
    throw UserError(fmt::format("silence = {} ms, but must be 0 .. {}", options.silence_ms, kLongestSilence));
  if (options.index && (options.index->first < 0 || options.index->second < options.index->first))
    throw UserError(
        fmt::format("index {}-{}: must be A-B with 0 <= A <= B", options.index->first, options.index->second));
  for (const std::string& name : options.speakers)
    if (!std::binary_search(speakers.begin(), speakers.end(), name))
      throw UserError(fmt::format("{}: no recordings of speaker '{}'; there are: {}", options.folder.string(), name,
                                  fmt::join(speakers, ", ")));
}

bool keeps(const EncodeFolderOptions& options, const NamedRecording& file) {
  const auto& wanted = options.speakers;
  return (!options.index || (file.index >= options.index->first && file.index <= options.index->second)) &&
         (wanted.empty() || std::find(wanted.begin(), wanted.end(), file.speaker) != wanted.end());
}

/// FNV-1a of the file's name: the number of its random stream.
std::uint64_t number_of(const fs::path& path) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : path.filename().string()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

/// The recording with so much silence before and after it.
std::vector<float> in_silence(const Recording& recording, int silence_ms) {
  const auto silence = static_cast<std::size_t>(static_cast<std::int64_t>(recording.sample_rate) * silence_ms / 1000);
  std::vector<float> samples(recording.samples.size() + 2 * silence, 0.0F);
  std::copy(recording.samples.begin(), recording.samples.end(), samples.begin() + static_cast<std::ptrdiff_t>(silence));
  return samples;
}

}  // namespace

void encode_folder(const EncodeFolderOptions& options, ProgressListener& listener) {
  std::vector<NamedRecording> files = list_recordings(options.folder, listener);
  const std::vector<std::string> speakers = speakers_of(files);
  check_filters(options, speakers);
  std::vector<std::string> keys;
  for (int label = 0; label <= files.back().label; ++label) keys.push_back(std::to_string(label));
  const std::size_t all = files.size();
  std::erase_if(files, [&](const NamedRecording& file) { return !keeps(options, file); });
  if (files.empty())
    throw UserError(fmt::format("{}: the filters leave none of its {} recordings", options.folder.string(), all));

  ShdWriter writer(options.out);
  std::size_t silent = 0;
  encode_in_order(
      files.size(), options.threads,
      [&](std::size_t item, InnerEar& ear) {
        const NamedRecording& file = files[item];
        const Recording recording = read_audio(file.path);
        const auto place = std::lower_bound(speakers.begin(), speakers.end(), file.speaker);
        return EncodedRecording{ear.encode(in_silence(recording, options.silence_ms), recording.sample_rate,
                                           options.seed, number_of(file.path)),
                                file.label, static_cast<int>(place - speakers.begin())};
      },
      [&](std::size_t item, const EncodedRecording& sample) {
        writer.add(sample.events, sample.label, sample.speaker);
        if (sample.events.empty()) ++silent;
        listener.progress("encoding", item + 1, files.size(), files[item].path.filename().string());
      });
  writer.finish(keys, std::vector<ShdSpeaker>(speakers.size(), ShdSpeaker{"unknown", 0, 0}));
  if (silent > 0) listener.warning(fmt::format("{} of {} recordings are silent: empty samples", silent, files.size()));
}

}  // namespace spikeloom
