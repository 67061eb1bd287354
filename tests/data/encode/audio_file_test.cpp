#include "data/encode/audio_file.hpp"

#include <gtest/gtest.h>
#include <sndfile.h>

#include <cmath>
#include <limits>

#include "sound.hpp"

namespace spikeloom {
namespace {

using testing::read_bytes;
using testing::sine;
using testing::user_error;
using testing::write_bytes;
using testing::write_sound;

constexpr int kWav16 = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
constexpr int kWavFloat = SF_FORMAT_WAV | SF_FORMAT_FLOAT;

TEST(ReadAudio, GivesBackWhatWasWrittenInEachFormat) {
  const TemporaryFolder folder;
  const auto samples = sine(440.0, 0.1, 16'000);
  for (const auto& [format, tolerance] : {std::pair{kWav16, 1e-4F},
                                          {kWavFloat, 0.0F},
                                          {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1e-4F},
                                          {SF_FORMAT_WAVEX | SF_FORMAT_PCM_16, 1e-4F}}) {
    const auto path = folder / "sound";
    write_sound(path, samples, 16'000, 1, format);
    const Recording recording = read_audio(path);
    EXPECT_EQ(recording.sample_rate, 16'000);
    ASSERT_EQ(recording.samples.size(), samples.size());
    for (std::size_t i = 0; i < samples.size(); ++i) ASSERT_NEAR(recording.samples[i], samples[i], tolerance);
  }
}

TEST(ReadAudio, StereoIsTheMeanOfItsChannels) {
  const TemporaryFolder folder;
  const auto path = folder / "stereo.wav";
  write_sound(path, {0.5F, 0.25F, -1.0F, 1.0F, 0.0F, 0.5F}, 44'100, 2, kWavFloat);
  EXPECT_EQ(read_audio(path).samples, (std::vector<float>{0.375F, 0.0F, 0.25F}));
}

TEST(ReadAudio, DamagedFilesAreRefusedByName) {
  const TemporaryFolder folder;
  const auto path = folder / "broken.wav";
  write_sound(folder / "good.wav", sine(440.0, 0.1, 16'000), 16'000, 1, kWav16);
  write_sound(folder / "good.flac", sine(440.0, 2.0, 16'000), 16'000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16);
  const std::string wave = read_bytes(folder / "good.wav");
  const std::string flac = read_bytes(folder / "good.flac");
  const std::string text = "label,speaker\n1,2\n";
  for (const std::string& bytes :
       {std::string(), text, std::string(1000, '\0'), wave.substr(0, 3), wave.substr(0, 30), wave.substr(0, 44),
        wave.substr(0, wave.size() / 2), wave.substr(0, wave.size() - 1), flac.substr(0, flac.size() / 2)}) {
    write_bytes(path, bytes);
    EXPECT_NE(user_error([&] { read_audio(path); }).find("broken.wav"), std::string::npos) << bytes.size() << " bytes";
  }
}

TEST(ReadAudio, NoDamagedByteInAHeaderDoesHarm) {
  const TemporaryFolder folder;
  const auto path = folder / "fuzzed.wav";
  write_sound(path, sine(440.0, 0.01, 16'000), 16'000, 2, kWav16);
  const std::string wave = read_bytes(path);
  for (std::size_t at = 0; at < 60; ++at) {
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string bytes = wave;
      bytes[at] = value;
      write_bytes(path, bytes);
      try {
        for (const float x : read_audio(path).samples) ASSERT_TRUE(std::isfinite(x));
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("fuzzed.wav"), std::string::npos);
      }
    }
  }
}

TEST(ReadAudio, WhatIsOutOfRangeIsRefusedWithTheRange) {
  const TemporaryFolder folder;
  const auto path = folder / "odd.wav";
  write_sound(path, std::vector<float>(300, 0.1F), 96'000, 1, kWav16);
  EXPECT_NE(user_error([&] { read_audio(path); }).find("sample rate 96000 Hz is outside 8000 .. 48000 Hz"),
            std::string::npos);
  write_sound(path, std::vector<float>(300, 0.1F), 4'000, 1, kWav16);
  EXPECT_NE(user_error([&] { read_audio(path); }).find("sample rate 4000 Hz"), std::string::npos);
  write_sound(path, std::vector<float>(300, 0.1F), 16'000, 3, kWav16);
  EXPECT_NE(user_error([&] { read_audio(path); }).find("3 channels"), std::string::npos);
  write_sound(path, std::vector<float>(31 * 8'000, 0.1F), 8'000, 1, kWav16);
  EXPECT_NE(user_error([&] { read_audio(path); }).find("longer than 30 s"), std::string::npos);
  write_sound(path, {}, 16'000, 1, kWav16);
  EXPECT_NE(user_error([&] { read_audio(path); }).find("no samples"), std::string::npos);
}

TEST(ReadAudio, ASampleThatIsNoNumberIsNamed) {
  const TemporaryFolder folder;
  const auto path = folder / "nan.wav";
  write_sound(path, {0.0F, 0.1F, std::numeric_limits<float>::quiet_NaN()}, 16'000, 1, kWavFloat);
  EXPECT_NE(user_error([&] { read_audio(path); }).find("sample 2"), std::string::npos);
  write_sound(path, {std::numeric_limits<float>::infinity()}, 16'000, 1, kWavFloat);
  EXPECT_NE(user_error([&] { read_audio(path); }).find("sample 0"), std::string::npos);
}

TEST(ReadAudio, MissingFilesAndFoldersAreNamed) {
  const TemporaryFolder folder;
  EXPECT_NE(user_error([&] { read_audio(folder / "none.wav"); }).find("none.wav: no such file"), std::string::npos);
  EXPECT_NE(user_error([&] { read_audio(folder.path()); }).find("not a regular file"), std::string::npos);
}

}  // namespace
}  // namespace spikeloom
