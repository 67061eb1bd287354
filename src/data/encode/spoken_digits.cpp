#include "data/encode/spoken_digits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "core/progress.hpp"
#include "core/random.hpp"
#include "data/encode/inner_ear.hpp"
#include "data/encode/ordered_encoding.hpp"
#include "data/encode/speech.hpp"
#include "data/encode/voices.hpp"
#include "data/shd_file.hpp"

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

constexpr int kFewest = kSpokenDigitClasses;
constexpr int kMost = 1'000'000;
constexpr std::size_t kFewestFamilies = 8;  // per split

/// A family as installed on this machine.
struct Speaker {
  int number;
  std::vector<std::string> variants;
};

struct Utterance {
  int label = 0;
  int speaker = 0;
  SpeechRequest speech;
  double lead_s = 0.0;        // silence before the word
  double trail_s = 0.0;       // and after it
  double noise_db = 0.0;      // signal-to-noise ratio
  double noise_colour = 0.0;  // coefficient of the noise's one-pole low-pass; 0 is white
};

std::vector<Speaker> speakers_of(bool test, const std::vector<std::string>& installed) {
  std::vector<Speaker> speakers;
  const std::vector<VoiceFamily>& families = voice_families();
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (families[i].test != test) continue;
    Speaker speaker{static_cast<int>(i), {}};
    for (const std::string_view variant : families[i].variants)
      if (std::binary_search(installed.begin(), installed.end(), variant)) speaker.variants.emplace_back(variant);
    if (!speaker.variants.empty()) speakers.push_back(std::move(speaker));
  }
  if (speakers.size() < kFewestFamilies)
    throw UserError(fmt::format(
        "espeak-ng has only {} of the {} set's voices, at least {} are needed; install it with its data: apt "
        "install espeak-ng espeak-ng-data",
        speakers.size(), test ? "test" : "train", kFewestFamilies));
  return speakers;
}

Utterance draw_utterance(RandomStream& random, std::size_t index, const std::vector<Speaker>& speakers) {
  Utterance utterance;
  utterance.label = static_cast<int>(index % kSpokenDigitClasses);
  const Speaker& speaker = speakers[random.below(speakers.size())];
  const auto voices = utterance.label < 10 ? english_voices() : german_voices();
  const std::string_view voice = voices[random.below(voices.size())];
  utterance.speaker = speaker.number;
  utterance.speech.voice = fmt::format("{}+{}", voice, speaker.variants[random.below(speaker.variants.size())]);
  utterance.speech.text = spoken_digit_text(utterance.label);
  utterance.speech.words_per_minute = 125 + static_cast<int>(random.below(61));
  utterance.speech.pitch = 30 + static_cast<int>(random.below(41));
  utterance.speech.amplitude = 60 + static_cast<int>(random.below(81));
  utterance.lead_s = random.uniform(0.04, 0.12);
  utterance.trail_s = random.uniform(0.04, 0.12);
  utterance.noise_db = random.uniform(10.0, 30.0);
  utterance.noise_colour = random.uniform(0.0, 0.95);
  return utterance;
}

double mean_power(const std::vector<float>& samples) {
  double power = 0.0;
  for (const float x : samples) power += double{x} * x;
  return samples.empty() ? 0.0 : power / static_cast<double>(samples.size());
}

/// Cuts the silence that espeak-ng puts around a word: what is 50 dB below the peak, but for 10 ms.
void trim(Recording& recording) {
  float peak = 0.0F;
  for (const float x : recording.samples) peak = std::max(peak, std::abs(x));
  const auto loud = [limit = 0.003F * peak](float x) { return std::abs(x) > limit; };
  const auto margin = static_cast<std::ptrdiff_t>(recording.sample_rate / 100);
  auto& samples = recording.samples;
  const auto last = std::find_if(samples.rbegin(), samples.rend(), loud).base();
  samples.erase(std::min(last + std::min(margin, samples.end() - last), samples.end()), samples.end());
  const auto first = std::find_if(samples.begin(), samples.end(), loud);
  samples.erase(samples.begin(), first - std::min(margin, first - samples.begin()));
}

void add_silence_and_noise(Recording& recording, const Utterance& utterance, RandomStream& random) {
  std::vector<float>& samples = recording.samples;
  const double speech_power = mean_power(samples);
  samples.insert(samples.begin(), static_cast<std::size_t>(utterance.lead_s * recording.sample_rate), 0.0F);
  samples.resize(samples.size() + static_cast<std::size_t>(utterance.trail_s * recording.sample_rate), 0.0F);
  std::vector<float> noise(samples.size());
  double state = 0.0;
  for (float& x : noise) x = static_cast<float>(state = utterance.noise_colour * state + random.normal());
  const double gain = std::sqrt(speech_power * std::pow(10.0, -0.1 * utterance.noise_db) / mean_power(noise));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] += static_cast<float>(gain * noise[i]);
}

class DigitSet {
 public:
  DigitSet(const SpokenDigitsOptions& options, bool test, const std::vector<std::string>& installed)
      : seed_(options.seed),
        purpose_(test ? "spoken digits/test" : "spoken digits/train"),
        size_(static_cast<std::size_t>(test ? options.test : options.train)),
        speakers_(speakers_of(test, installed)),
        writer_(options.out / (test ? "test.h5" : "train.h5")) {}

  void make(int threads, const std::function<void(std::size_t done)>& tell) {
    encode_in_order(
        size_, threads, [&](std::size_t item, InnerEar& ear) { return make_sample(item, ear); },
        [&](std::size_t item, const EncodedRecording& sample) {
          writer_.add(sample.events, sample.label, sample.speaker);
          tell(item + 1);
        });
    std::vector<ShdSpeaker> rows;
    for (const VoiceFamily& family : voice_families()) rows.push_back({std::string(family.gender), 0, 0});
    writer_.finish(spoken_digit_keys(), rows);
  }

 private:
  EncodedRecording make_sample(std::size_t item, InnerEar& ear) const {
    RandomStream random(seed_, purpose_, item);
    const Utterance utterance = draw_utterance(random, item, speakers_);
    Recording recording = speak(utterance.speech);
    trim(recording);
    add_silence_and_noise(recording, utterance, random);
    // The stream's number keeps the fibres' draws of the two sets apart.
    const std::uint64_t number = item * 2 + (purpose_.ends_with("test") ? 1 : 0);
    return {ear.encode(recording.samples, recording.sample_rate, seed_, number), utterance.label, utterance.speaker};
  }

  std::uint64_t seed_;
  std::string purpose_;
  std::size_t size_;
  std::vector<Speaker> speakers_;
  ShdWriter writer_;
};

void check(const SpokenDigitsOptions& options) {
  for (const auto& [name, value] : {std::pair{"train", options.train}, std::pair{"test", options.test}})
    if (value < kFewest || value > kMost)
      throw UserError(fmt::format("spoken digits: {} = {}, but must be {} .. {} samples", name, value, kFewest, kMost));
  if (options.threads < 0)
    throw UserError(fmt::format("spoken digits: threads = {}, but must be 0 (all cores) or more", options.threads));
}

}  // namespace

void make_spoken_digits(const SpokenDigitsOptions& options, ProgressListener& listener) {
  check(options);
  const std::vector<std::string> installed = installed_variants();
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  if (error)
    throw UserError(fmt::format("{}: the folder cannot be created ({})", options.out.string(), error.message()));
  // Both files are opened before the work, which takes minutes.
  DigitSet train(options, false, installed);
  DigitSet test(options, true, installed);
  const auto total = static_cast<std::uint64_t>(options.train) + static_cast<std::uint64_t>(options.test);
  train.make(options.threads, [&](std::size_t done) { listener.progress("spoken digits", done, total, "train"); });
  test.make(options.threads, [&](std::size_t done) {
    listener.progress("spoken digits", static_cast<std::uint64_t>(options.train) + done, total, "test");
  });
}

}  // namespace spikeloom
