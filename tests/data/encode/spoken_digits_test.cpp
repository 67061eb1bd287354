#include "data/encode/spoken_digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>

#include <spikeloom/dataset.hpp>

#include "data/encode/speech.hpp"
#include "data/encode/voices.hpp"
#include "sound.hpp"

namespace spikeloom {
namespace {

using testing::read_bytes;
using testing::RecordingListener;
using testing::user_error;

/// The environment's PATH, put back at the end.
class OtherPath {
 public:
  explicit OtherPath(const char* path) : old_(std::getenv("PATH")) { setenv("PATH", path, 1); }
  ~OtherPath() { setenv("PATH", old_.c_str(), 1); }

 private:
  std::string old_;
};

class SpokenDigits : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      speak({"en-us", "one"});
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what() << "; no speech was made";
    }
  }

  SpokenDigitsOptions options(const std::string& out, int train = 40, int test = 20, int threads = 2) const {
    return {folder_ / out, train, test, 3, threads};
  }

  static SpikeDataset read(const std::filesystem::path& path) {
    ReadOptions o;
    o.binning = {1'000, 2'000, 1, true};
    return read_dataset(path, o);
  }

  TemporaryFolder folder_;
  RecordingListener listener_;
};

TEST_F(SpokenDigits, TheNumberOfThreadsDoesNotChangeAByte) {
  make_spoken_digits(options("one", 40, 20, 1), listener_);
  make_spoken_digits(options("three", 40, 20, 3), listener_);
  for (const char* name : {"train.h5", "test.h5"})
    EXPECT_EQ(read_bytes(folder_ / "one" / name), read_bytes(folder_ / "three" / name)) << name;
  EXPECT_EQ(listener_.reported.back(), 60U);
  EXPECT_EQ(listener_.last_total, 60U);
}

TEST_F(SpokenDigits, ClassesAreBalancedAndNoSpeakerIsInBothSets) {
  make_spoken_digits(options("set", 100, 60), listener_);
  std::set<int> speakers[2];
  for (const int part : {0, 1}) {
    const SpikeDataset data = read(folder_ / "set" / (part == 0 ? "train.h5" : "test.h5"));
    ASSERT_EQ(data.size(), part == 0 ? 100U : 60U);
    std::vector<int> counts(kSpokenDigitClasses, 0);
    for (std::size_t i = 0; i < data.size(); ++i) {
      ++counts.at(static_cast<std::size_t>(data.label(i)));
      speakers[part].insert(data.speaker(i));
      EXPECT_GT(data.events(i), 500U) << i;
      EXPECT_LT(data.duration_us(i), 1'600'000) << i;
      EXPECT_GT(data.duration_us(i), 200'000) << i;
    }
    EXPECT_EQ(*std::min_element(counts.begin(), counts.end()), *std::max_element(counts.begin(), counts.end()));
  }
  for (const int speaker : speakers[0]) EXPECT_EQ(speakers[1].count(speaker), 0U) << speaker;
  for (const int part : {0, 1})
    for (const int speaker : speakers[part])
      EXPECT_EQ(voice_families().at(static_cast<std::size_t>(speaker)).test, part == 1);
}

TEST_F(SpokenDigits, ALargerSetBeginsWithTheSmallerOne) {
  make_spoken_digits(options("small", 20, 20), listener_);
  make_spoken_digits(options("large", 40, 20), listener_);
  const SpikeDataset small = read(folder_ / "small" / "train.h5");
  const SpikeDataset large = read(folder_ / "large" / "train.h5");
  for (std::size_t i = 0; i < small.size(); ++i) {
    EXPECT_EQ(small.speaker(i), large.speaker(i));
    EXPECT_TRUE(std::ranges::equal(small.ids(i), large.ids(i))) << i;
  }
}

TEST_F(SpokenDigits, AnotherSeedGivesOtherSamples) {
  make_spoken_digits(options("a", 20, 20), listener_);
  SpokenDigitsOptions other = options("b", 20, 20);
  other.seed = 4;
  make_spoken_digits(other, listener_);
  EXPECT_NE(read_bytes(folder_ / "a" / "train.h5"), read_bytes(folder_ / "b" / "train.h5"));
}

TEST_F(SpokenDigits, EveryVoiceOfTheTableIsInstalledAndSpeaks) {
  const auto installed = installed_variants();
  for (const VoiceFamily& family : voice_families())
    for (const std::string_view variant : family.variants)
      EXPECT_TRUE(std::binary_search(installed.begin(), installed.end(), variant)) << variant;
  for (const auto voices : {english_voices(), german_voices()})
    for (const std::string_view voice : voices)
      EXPECT_GT(speak({std::string(voice), "eins"}).samples.size(), 4000U) << voice;
}

TEST_F(SpokenDigits, BadOptionsAreRefusedBeforeAnyWork) {
  EXPECT_NE(
      user_error([&] { make_spoken_digits(options("x", 19, 20), listener_); }).find("train = 19, but must be 20 .."),
      std::string::npos);
  EXPECT_NE(user_error([&] { make_spoken_digits(options("x", 20, 0), listener_); }).find("test = 0"),
            std::string::npos);
  EXPECT_NE(user_error([&] { make_spoken_digits(options("x", 20, 20, -1), listener_); }).find("threads = -1"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
  testing::write_bytes(folder_ / "file", "not a folder");
  EXPECT_NE(user_error([&] { make_spoken_digits(options("file"), listener_); }).find("file"), std::string::npos);
}

TEST_F(SpokenDigits, WithoutEspeakItSaysHowToInstallIt) {
  const OtherPath empty("/nonexistent");
  const std::string text = user_error([&] { make_spoken_digits(options("x"), listener_); });
  EXPECT_NE(text.find("apt install espeak-ng"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

TEST_F(SpokenDigits, AFailingProgramIsAnErrorAndLeavesNoFile) {
  // A program of this name that lists voices but cannot speak.
  std::filesystem::create_directory(folder_ / "bin");
  std::string script = "#!/bin/sh\n[ \"$1\" = --voices=variant ] || exit 3\n";
  for (const std::string& variant : installed_variants()) script += "echo ' 5  variant  --/M  x  !v/" + variant + "'\n";
  const auto program = folder_ / "bin" / "espeak-ng";
  testing::write_bytes(program, script);
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const OtherPath broken((folder_ / "bin").c_str());
  EXPECT_NE(user_error([&] { make_spoken_digits(options("x"), listener_); }).find("espeak-ng failed"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "x"));
}

}  // namespace
}  // namespace spikeloom
