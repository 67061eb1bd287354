#include "data/encode/encode_folder.hpp"

#include <gtest/gtest.h>
#include <sndfile.h>

#include <algorithm>

#include <spikeloom/dataset.hpp>

#include "sound.hpp"

namespace spikeloom {
namespace {

using testing::babble;
using testing::read_bytes;
using testing::RecordingListener;
using testing::user_error;
using testing::write_bytes;
using testing::write_sound;

constexpr int kWav16 = SF_FORMAT_WAV | SF_FORMAT_PCM_16;

class EncodeFolder : public ::testing::Test {
 protected:
  EncodeFolder() {
    std::filesystem::create_directory(sounds_);
    int n = 0;
    for (const char* speaker : {"zoe", "ann_b", "max"})
      for (int label = 0; label < 2; ++label)
        for (const int index : {0, 3, 10})
          add(std::to_string(label) + "_" + speaker + "_" + std::to_string(index) + ".wav", 0.1 + 0.01 * n++);
  }

  void add(const std::string& name, double seconds, double amplitude = 0.2) {
    write_sound(sounds_ / name, babble(seconds, 8'000, amplitude), 8'000, 1, kWav16);
  }

  EncodeFolderOptions options(const std::string& out = "out.h5") const {
    EncodeFolderOptions o;
    o.folder = sounds_;
    o.out = folder_ / out;
    o.threads = 2;
    return o;
  }

  SpikeDataset run(const EncodeFolderOptions& o) {
    encode_folder(o, listener_);
    ReadOptions read;
    read.binning = {1'000, 1'000, 1, true};
    return read_dataset(o.out, read);
  }

  static std::vector<std::uint32_t> ids(const SpikeDataset& data, std::size_t sample) {
    return {data.ids(sample).begin(), data.ids(sample).end()};
  }

  TemporaryFolder folder_;
  std::filesystem::path sounds_ = folder_ / "sounds";
  RecordingListener listener_;
};

TEST_F(EncodeFolder, OrderIsLabelThenSpeakerThenIndexAndSpeakersAreSorted) {
  const SpikeDataset data = run(options());
  ASSERT_EQ(data.size(), 18U);
  for (std::size_t i = 0; i < data.size(); ++i) {
    EXPECT_EQ(data.label(i), static_cast<int>(i / 9));
    EXPECT_EQ(data.speaker(i), static_cast<int>(i / 3 % 3));
    EXPECT_GT(data.events(i), 100U);
  }
  EXPECT_EQ(listener_.reported.back(), 18U);
  EXPECT_EQ(listener_.last_total, 18U);
  EXPECT_TRUE(listener_.warnings.empty());
}

TEST_F(EncodeFolder, SilenceAroundARecordingKeepsItsFirstAndLastSounds) {
  const SpikeDataset bare = run(options());
  EncodeFolderOptions padded = options("padded.h5");
  padded.conditioning.silence_ms = 100;
  const SpikeDataset data = run(padded);
  const auto events_within = [](const SpikeDataset& set, std::size_t sample, int from_ms, int to_ms) {
    return set.offsets(sample)[static_cast<std::size_t>(to_ms)] -
           set.offsets(sample)[static_cast<std::size_t>(from_ms)];
  };
  for (std::size_t i = 0; i < data.size(); ++i) {
    EXPECT_GT(data.duration_us(i), bare.duration_us(i) + 50'000);
    EXPECT_GT(events_within(data, i, 100, 120), events_within(bare, i, 0, 20));  // the first 20 ms of sound
  }
  padded.conditioning.silence_ms = -1;
  EXPECT_NE(user_error([&] { encode_folder(padded, listener_); }).find("silence of -1 ms: must be 0 .. 1000 ms"),
            std::string::npos);
}

TEST_F(EncodeFolder, TheNumberOfThreadsDoesNotChangeAByte) {
  EncodeFolderOptions one = options("one.h5");
  one.threads = 1;
  EncodeFolderOptions three = options("three.h5");
  three.threads = 3;
  encode_folder(one, listener_);
  encode_folder(three, listener_);
  EXPECT_EQ(read_bytes(one.out), read_bytes(three.out));
}

TEST_F(EncodeFolder, FiltersKeepWhatTheyNameAndChangeNoSpike) {
  const SpikeDataset all = run(options());
  EncodeFolderOptions o = options("some.h5");
  o.index = {3, 10};
  o.speakers = {"zoe", "max"};
  const SpikeDataset some = run(o);
  ASSERT_EQ(some.size(), 8U);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 3 == 0 || all.speaker(i) == 0) continue;  // index 0, or ann_b
    EXPECT_EQ(some.label(kept), all.label(i));
    EXPECT_EQ(some.speaker(kept), all.speaker(i));
    EXPECT_EQ(ids(some, kept), ids(all, i));
    ++kept;
  }
  EXPECT_EQ(kept, some.size());
}

TEST_F(EncodeFolder, StereoAndOtherRatesAreReadAndQuietIsAsLoudAsLoud) {
  const auto sound = babble(0.8, 44'100, 0.2);
  std::vector<float> stereo, quiet;
  for (const float x : sound) stereo.insert(stereo.end(), {x, x}), quiet.push_back(0.01F * x);
  std::filesystem::remove_all(sounds_);
  std::filesystem::create_directory(sounds_);
  write_sound(sounds_ / "0_a_0.wav", sound, 44'100, 1, kWav16);
  write_sound(sounds_ / "0_a_1.wav", stereo, 44'100, 2, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
  write_sound(sounds_ / "0_a_2.wav", quiet, 44'100, 1, kWav16);
  const SpikeDataset data = run(options());
  const auto loud = static_cast<double>(data.events(0));
  EXPECT_NEAR(static_cast<double>(data.events(1)), loud, 0.08 * loud);
  EXPECT_NEAR(static_cast<double>(data.events(2)), loud, 0.08 * loud);
}

TEST_F(EncodeFolder, ASilentRecordingIsAnEmptySampleWithAWarning) {
  write_sound(sounds_ / "1_max_11.wav", std::vector<float>(4000, 0.0F), 8'000, 1, kWav16);
  EncodeFolderOptions o = options();
  o.index = {11, 11};
  const SpikeDataset data = run(o);
  ASSERT_EQ(data.size(), 1U);
  EXPECT_EQ(data.events(0), 0U);
  ASSERT_EQ(listener_.warnings.size(), 1U);
  EXPECT_NE(listener_.warnings[0].find("1 of 1"), std::string::npos);
}

TEST_F(EncodeFolder, NamesOfAnotherFormAreRefusedByName) {
  for (const char* name :
       {"hello.wav", "_zoe_1.wav", "1__2.wav", "1_zoe_.wav", "x_zoe_1.wav", "1_zoe_x.wav", "-1_zoe_1.wav",
        "1_zoe_-1.wav", "10000_zoe_1.wav", "1_zoe.wav", "1.5_zoe_1.wav", "1_zoe_1 .wav", "99999999999_zoe_1.wav"}) {
    add(name, 0.05);
    const std::string text = user_error([&] { encode_folder(options(), listener_); });
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_NE(text.find("label_speaker_index"), std::string::npos) << text;
    std::filesystem::remove(sounds_ / name);
  }
}

TEST_F(EncodeFolder, OtherFilesAreSkippedWithANote) {
  write_bytes(sounds_ / "README.md", "hello");
  std::filesystem::create_directory(sounds_ / "more.wav");
  EXPECT_EQ(run(options()).size(), 18U);
  ASSERT_EQ(listener_.notes.size(), 1U);
  EXPECT_NE(listener_.notes[0].find("skipped 2"), std::string::npos);
}

TEST_F(EncodeFolder, ADamagedRecordingStopsTheWorkAndLeavesNoFile) {
  write_bytes(sounds_ / "1_zoe_7.wav", read_bytes(sounds_ / "1_zoe_0.wav").substr(0, 700));
  const std::string text = user_error([&] { encode_folder(options(), listener_); });
  EXPECT_NE(text.find("1_zoe_7.wav"), std::string::npos) << text;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().filename().string().find("out.h5"), std::string::npos) << entry.path();
}

TEST_F(EncodeFolder, FiltersThatMakeNoSenseAreRefused) {
  EncodeFolderOptions o = options();
  o.speakers = {"bob"};
  const std::string text = user_error([&] { encode_folder(o, listener_); });
  EXPECT_NE(text.find("'bob'"), std::string::npos);
  EXPECT_NE(text.find("ann_b, max, zoe"), std::string::npos);
  o = options();
  o.index = {11, 20};
  EXPECT_NE(user_error([&] { encode_folder(o, listener_); }).find("leave none of its 18"), std::string::npos);
  o.index = {4, 3};
  EXPECT_NE(user_error([&] { encode_folder(o, listener_); }).find("4-3"), std::string::npos);
  o = options();
  o.threads = -1;
  EXPECT_NE(user_error([&] { encode_folder(o, listener_); }).find("threads"), std::string::npos);
  o = options();
  o.folder = folder_ / "nowhere";
  EXPECT_NE(user_error([&] { encode_folder(o, listener_); }).find("nowhere: not a folder"), std::string::npos);
  std::filesystem::create_directory(folder_ / "empty");
  o.folder = folder_ / "empty";
  EXPECT_NE(user_error([&] { encode_folder(o, listener_); }).find("no .wav"), std::string::npos);
}

}  // namespace
}  // namespace spikeloom
