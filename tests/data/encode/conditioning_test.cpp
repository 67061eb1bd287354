// Conditioning of recordings before the ear.
#include "data/encode/conditioning.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

Recording tone(double hz, int rate) {
  Recording recording;
  recording.sample_rate = rate;
  for (int n = 0; n < rate / 2; ++n)
    recording.samples.push_back(static_cast<float>(std::sin(2.0 * std::numbers::pi * hz * n / rate)));
  return recording;
}

double loudness(const Recording& recording) {
  double sum = 0.0;
  for (const float sample : recording.samples) sum += static_cast<double>(sample) * sample;
  return std::sqrt(sum / static_cast<double>(recording.samples.size()));
}

TEST(Conditioning, OffChangesNothing) {
  Recording recording = tone(440.0, 8000);
  condition({}, recording);
  EXPECT_EQ(recording.samples, tone(440.0, 8000).samples);
}

TEST(Conditioning, PaddingIsSilenceOnBothSidesAtAnyRate) {
  for (const int rate : {8000, 44100, 48000}) {
    Recording recording = tone(440.0, rate);
    const std::size_t length = recording.samples.size();
    condition({.silence_ms = 100.0}, recording);
    ASSERT_EQ(recording.samples.size(), length + 2 * rate / 10);
    for (int n = 0; n < rate / 10; ++n) {
      EXPECT_EQ(recording.samples[n], 0.0f);
      EXPECT_EQ(recording.samples[recording.samples.size() - 1 - n], 0.0f);
    }
    EXPECT_EQ(recording.samples[rate / 10 + 5], tone(440.0, rate).samples[5]);
  }
}

TEST(Conditioning, PreEmphasisRaisesTonesBySixDecibelsAnOctaveAtAnyRate) {
  for (const int rate : {8000, 16000, 48000}) {
    const auto gain = [rate](double hz) {
      Recording recording = tone(hz, rate);
      condition({.pre_emphasis_hz = 60.0}, recording);
      return loudness(recording) / loudness(tone(hz, rate));
    };
    EXPECT_NEAR(gain(1000.0) / gain(500.0), 2.0, 0.06) << rate;
    EXPECT_NEAR(gain(2000.0) / gain(1000.0), 2.0, 0.17) << rate;
    EXPECT_LT(gain(40.0) / gain(20.0), 1.5) << rate;  // below the corner it is flat
  }
}

TEST(Conditioning, ValuesOutsideAreNamed) {
  EXPECT_THROW(check({.silence_ms = -1.0}), UserError);
  EXPECT_THROW(check({.silence_ms = 1001.0}), UserError);
  EXPECT_THROW(check({.pre_emphasis_hz = std::nan("")}), UserError);
  EXPECT_NO_THROW(check({.silence_ms = 150.0, .pre_emphasis_hz = 60.0}));
}

}  // namespace
}  // namespace spikeloom
