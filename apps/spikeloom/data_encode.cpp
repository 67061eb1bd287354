// spikeloom data encode: a folder of recordings as spikes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/encode/encode_folder.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

struct Options {
  std::string folder;
  std::string out;
  std::string index;
  EncodeFolderOptions encode;
  bool json = false;
};

/// "3-7" as 3 and 7, "3" as 3 and 3.
std::optional<std::pair<int, int>> parse_index(const std::string& text) {
  std::pair<int, int> index;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, index.first);
  if (first.ec != std::errc() || index.first < 0) return std::nullopt;
  index.second = index.first;
  if (first.ptr == end) return index;
  if (*first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, index.second);
  if (second.ec != std::errc() || second.ptr != end || index.second < index.first) return std::nullopt;
  return index;
}

void encode(const Options& options) {
  EncodeFolderOptions how = options.encode;
  how.folder = options.folder;
  how.out = options.out;
  if (!options.index.empty()) how.index = parse_index(options.index);
  run_interruptible([&](ProgressListener& listener) { encode_folder(how, listener); });
  if (options.json) {
    print_json({{"out", options.out}});
  } else {
    print_table({{"spikes", options.out}});
  }
}

}  // namespace

void add_data_encode(CLI::App& data, Action& action) {
  const auto options = std::make_shared<Options>();
  const auto is_index = [](const std::string& text) {
    return parse_index(text) ? std::string() : fmt::format("{} is not allowed: it must be A-B with 0 <= A <= B", text);
  };
  CLI::App* verb =
      data.add_subcommand("encode", "Turn a folder of recordings, named label_speaker_index.wav, into spikes");
  verb->add_option("DIR", options->folder, "Folder with recordings (8-48 kHz, mono or stereo)")->required();
  verb->add_option("--out", options->out, "HDF5 file to write, in SHD's layout")->required()->type_name("FILE");
  verb->add_option("--index", options->index, "Keep only recordings with these indices, both ends included")
      ->check(is_index)
      ->type_name("A-B");
  verb->add_option("--speaker", options->encode.speakers, "Keep only these speakers")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME,...");
  verb->add_option("--silence-ms", options->encode.conditioning.silence_ms,
                   "Silence put before and after each recording, for those cut close to their word")
      ->check(CLI::Range(0.0, 1000.0))
      ->type_name("MS");
  verb->add_option("--pre-emphasis-hz", options->encode.conditioning.pre_emphasis_hz,
                   "Raise frequencies by 6 dB an octave above this one; 0 is off")
      ->check(CLI::Range(0.0, 4000.0))
      ->type_name("HZ");
  verb->add_option("--seed", options->encode.seed, "Seed of the auditory nerve's randomness")
      ->capture_default_str()
      ->type_name("S");
  verb->add_option("--threads", options->encode.threads, "Threads; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  verb->callback([=, &action] { action = [options] { encode(*options); }; });
}

}  // namespace spikeloom
