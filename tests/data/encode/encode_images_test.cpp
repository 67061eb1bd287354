// Images as spikes: what the encoders promise, and the folder with its files.
#include "data/encode/encode_images.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <spikeloom/dataset.hpp>

#include "core/random.hpp"
#include "sound.hpp"

namespace spikeloom {
namespace {

using testing::read_bytes;
using testing::RecordingListener;
using testing::user_error;
using testing::write_bytes;

ImageEncoding encoding_of(ImageEncoder encoder, int steps = 50) {
  ImageEncoding encoding;
  encoding.encoder = encoder;
  encoding.steps = steps;
  encoding.floor = 0.2;
  return encoding;
}

/// All grey values, one pixel each.
std::vector<std::uint8_t> ramp() {
  std::vector<std::uint8_t> image(256);
  for (std::size_t value = 0; value < image.size(); ++value) image[value] = static_cast<std::uint8_t>(value);
  return image;
}

/// The step of an event, exact by contract.
std::int64_t step_of(const Event& event) {
  EXPECT_EQ(event.time_us % kImageStepUs, kImageStepUs / 2);
  return event.time_us / kImageStepUs;
}

TEST(ImageSpikes, BrighterIsNeverLaterAndTheWholeWindowIsUsed) {
  for (const ImageEncoder encoder : {ImageEncoder::latency, ImageEncoder::latency_log}) {
    for (const int steps : {1, 2, 7, 50, 1000}) {
      for (const double floor : {1.0 / 255, 0.2, 0.5, 0.9, 1.0}) {
        ImageEncoding encoding = encoding_of(encoder, steps);
        encoding.floor = floor;
        const std::array<int, 256> step = latency_steps(encoding);
        EXPECT_EQ(step[255], 0);
        int latest = 0;
        for (std::size_t value = 255; value > 0; --value) {
          const bool bright = static_cast<double>(value) / 255 >= floor;
          ASSERT_EQ(step[value] >= 0, bright) << value;
          if (!bright) continue;
          ASSERT_GE(step[value], latest);
          ASSERT_LT(step[value], steps);
          latest = step[value];
        }
        EXPECT_EQ(step[0], -1);
        if (floor == 1.0 / 255) {
          EXPECT_EQ(latest, steps - 1);
        }
      }
    }
  }
}

TEST(ImageSpikes, LinearLatencyIsProportionalToDarknessAndLogarithmicCrowdsTheBright) {
  const auto linear = latency_steps(encoding_of(ImageEncoder::latency));
  const auto logarithmic = latency_steps(encoding_of(ImageEncoder::latency_log));
  for (std::size_t value = 51; value < 256; ++value) {
    EXPECT_EQ(linear[value], std::min(49, static_cast<int>((255.0 - static_cast<double>(value)) / 204.0 * 50 + 1e-9)));
    EXPECT_LE(logarithmic[value], linear[value]);
  }
  // By hand: theta = 0.2 (1 - e^-2.5), t(x) = ln(x / (x - theta)); so (t(128 / 255) - t(1)) / (t(0.2) - t(1)) = 0.1099,
  // times 50 = 5.5.
  EXPECT_EQ(logarithmic[128], 5);
}

TEST(ImageSpikes, LatencyGivesOneSpikePerPixelAboveTheFloorInOrder) {
  const ImageSpikes spikes(encoding_of(ImageEncoder::latency));
  const std::vector<Event> events = spikes.encode(ramp(), RandomStream(1, "test"));
  EXPECT_EQ(events.size(), 255U - 51U + 1U);
  std::map<std::uint32_t, int> seen;
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(++seen[events[i].channel], 1);
    EXPECT_EQ(step_of(events[i]), latency_steps(encoding_of(ImageEncoder::latency))[events[i].channel]);
    if (i > 0) {
      EXPECT_TRUE(std::pair(events[i - 1].time_us, events[i - 1].channel) <
                  std::pair(events[i].time_us, events[i].channel));
    }
  }
}

TEST(ImageSpikes, RatesAreWithinBinomialBoundsForEveryBrightness) {
  ImageEncoding encoding = encoding_of(ImageEncoder::rate, 200);
  encoding.rate = 0.3;
  const ImageSpikes spikes(encoding);
  constexpr int kImages = 100;
  std::vector<double> counts(256, 0.0);
  std::vector<double> per_step(200, 0.0);
  for (int image = 0; image < kImages; ++image)
    for (const Event& event : spikes.encode(ramp(), RandomStream(3, "test", static_cast<std::uint64_t>(image)))) {
      counts[event.channel] += 1.0;
      per_step[static_cast<std::size_t>(step_of(event))] += 1.0;
    }
  const double draws = 200.0 * kImages;
  for (std::size_t value = 0; value < 256; ++value) {
    const double p = 0.3 * static_cast<double>(value) / 255.0;
    EXPECT_LE(std::abs(counts[value] - draws * p), 5.0 * std::sqrt(draws * p * (1.0 - p))) << value;  // 5 sigma
  }
  for (const double count : per_step)  // 256 pixels of 100 images, p = 0.15 on average
    EXPECT_NEAR(count, 25600 * 0.15, 5.0 * std::sqrt(25600 * 0.15));
}

TEST(ImageSpikes, ACertainRateSpikesInEveryStepAndBlackNever) {
  ImageEncoding encoding = encoding_of(ImageEncoder::rate);
  encoding.rate = 1.0;
  const std::vector<std::uint8_t> image{255, 0};
  const std::vector<Event> events = ImageSpikes(encoding).encode(image, RandomStream(1, "test"));
  ASSERT_EQ(events.size(), 50U);
  for (std::size_t step = 0; step < events.size(); ++step) {
    EXPECT_EQ(step_of(events[step]), static_cast<std::int64_t>(step));
    EXPECT_EQ(events[step].channel, 0U);
  }
}

TEST(ImageSpikes, OptionsOutsideTheirRangesAreRefusedByName) {
  ImageEncoding encoding;
  for (const int steps : {0, -1, 1001}) {
    encoding.steps = steps;
    EXPECT_NE(user_error([&] { check(encoding); }).find("steps = " + std::to_string(steps) + "; allowed: 1 to 1000"),
              std::string::npos);
  }
  encoding = {};
  for (const double wrong : {0.0, -0.5, 1.5, std::nan("")}) {
    encoding = {};
    encoding.floor = wrong;
    EXPECT_NE(user_error([&] { ImageSpikes spikes(encoding); }).find("floor = "), std::string::npos);
    encoding = {};
    encoding.rate = wrong;
    EXPECT_NE(user_error([&] { ImageSpikes spikes(encoding); }).find("rate = "), std::string::npos);
  }
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift & 0xFFU));
  return bytes;
}

class EncodeImages : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kWidth = 6;
  static constexpr std::uint32_t kHeight = 4;

  EncodeImages() {
    std::filesystem::create_directory(images_);
    put_set("train", 40);
    put_set("t10k", 12);
  }

  static std::string images_of(std::uint32_t count, std::uint32_t width = kWidth, std::uint32_t height = kHeight) {
    std::string bytes = big_endian(0x803) + big_endian(count) + big_endian(height) + big_endian(width);
    for (std::uint32_t i = 0; i < count * width * height; ++i)
      bytes.push_back(static_cast<char>((i * 7919) >> 3 & 0xFF));
    return bytes;
  }
  static std::string labels_of(std::uint32_t count) {
    std::string bytes = big_endian(0x801) + big_endian(count);
    for (std::uint32_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i % 5));
    return bytes;
  }
  void put_set(const std::string& prefix, std::uint32_t count) {
    write_bytes(images_ / (prefix + "-images-idx3-ubyte"), images_of(count));
    write_bytes(images_ / (prefix + "-labels-idx1-ubyte"), labels_of(count));
  }

  EncodeImagesOptions options(ImageEncoder encoder, const std::string& out = "out") const {
    EncodeImagesOptions o;
    o.folder = images_;
    o.out = folder_ / out;
    o.encoding.encoder = encoder;
    o.threads = 2;
    return o;
  }

  std::string refusal(const EncodeImagesOptions& o) {
    const std::string text = user_error([&] { encode_images(o, listener_); });
    EXPECT_FALSE(std::filesystem::exists(o.out / "train.h5"));
    EXPECT_FALSE(std::filesystem::exists(o.out / "test.h5"));
    return text;
  }

  TemporaryFolder folder_;
  std::filesystem::path images_ = folder_ / "images";
  RecordingListener listener_;
};

TEST_F(EncodeImages, BinningGivesTheEncodersStepsBackExactly) {
  for (const ImageEncoder encoder : {ImageEncoder::latency, ImageEncoder::latency_log, ImageEncoder::rate}) {
    for (const int steps : {1, 50, 1000}) {
      EncodeImagesOptions o = options(encoder);
      o.encoding.steps = steps;
      o.encoding.rate = 0.5;
      const EncodedImages made = encode_images(o, listener_);
      EXPECT_EQ(made.train, 40U);
      EXPECT_EQ(made.test, 12U);
      ReadOptions read;
      read.channels = kWidth * kHeight;
      read.binning = {kImageStepUs, steps, 1, false};
      const SpikeDataset data = read_dataset(o.out / "train.h5", read);
      ASSERT_EQ(data.size(), 40U);
      EXPECT_EQ(data.report().dropped_late, 0U);
      EXPECT_EQ(data.report().merged, 0U);
      const std::string pixels = images_of(40).substr(16);
      const ImageSpikes spikes(o.encoding);
      for (std::size_t sample = 0; sample < data.size(); ++sample) {
        EXPECT_EQ(data.label(sample), static_cast<int>(sample % 5));
        const auto* image = reinterpret_cast<const std::uint8_t*>(pixels.data()) + sample * kWidth * kHeight;
        const std::vector<Event> events =
            spikes.encode({image, kWidth * kHeight}, RandomStream(o.seed, "images/train", sample));
        ASSERT_EQ(data.ids(sample).size(), events.size());
        std::size_t next = 0;
        for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step)
          for (std::size_t i = data.offsets(sample)[step]; i < data.offsets(sample)[step + 1]; ++i, ++next) {
            ASSERT_EQ(events[next].channel, data.ids(sample)[i]);
            ASSERT_EQ(events[next].time_us / kImageStepUs, static_cast<std::int64_t>(step));
          }
      }
    }
  }
}

TEST_F(EncodeImages, TheSameSeedGivesTheSameBytesForAnyNumberOfThreads) {
  EncodeImagesOptions one = options(ImageEncoder::rate, "one");
  one.threads = 1;
  EncodeImagesOptions three = options(ImageEncoder::rate, "three");
  three.threads = 3;
  EncodeImagesOptions other = options(ImageEncoder::rate, "other");
  other.seed = 2;
  for (const EncodeImagesOptions& o : {one, three, other}) encode_images(o, listener_);
  for (const char* name : {"train.h5", "test.h5"}) {
    EXPECT_EQ(read_bytes(one.out / name), read_bytes(three.out / name));
    EXPECT_NE(read_bytes(one.out / name), read_bytes(other.out / name));
  }
  EXPECT_EQ(listener_.reported.back(), 52U);
  EXPECT_EQ(listener_.last_total, 52U);
}

TEST_F(EncodeImages, TrainingAndTestImagesDrawDifferentSpikes) {
  write_bytes(images_ / "t10k-images-idx3-ubyte", images_of(40));
  write_bytes(images_ / "t10k-labels-idx1-ubyte", labels_of(40));
  const EncodeImagesOptions o = options(ImageEncoder::rate);
  encode_images(o, listener_);
  EXPECT_NE(read_bytes(o.out / "train.h5"), read_bytes(o.out / "test.h5"));
}

TEST_F(EncodeImages, NamesWithADotAreFound) {
  std::filesystem::rename(images_ / "train-images-idx3-ubyte", images_ / "train-images.idx3-ubyte");
  EXPECT_EQ(encode_images(options(ImageEncoder::latency), listener_).train, 40U);
}

TEST_F(EncodeImages, AMissingFileIsNamed) {
  std::filesystem::remove(images_ / "t10k-labels-idx1-ubyte");
  const std::string text = refusal(options(ImageEncoder::latency));
  EXPECT_NE(text.find(images_.string() + ": has no t10k-labels-idx1-ubyte"), std::string::npos) << text;
  EncodeImagesOptions o = options(ImageEncoder::latency);
  o.folder = folder_ / "nowhere";
  EXPECT_NE(refusal(o).find("nowhere: not a folder"), std::string::npos);
}

TEST_F(EncodeImages, AsManyLabelsAsImagesAreNeeded) {
  write_bytes(images_ / "train-labels-idx1-ubyte", labels_of(39));
  const std::string text = refusal(options(ImageEncoder::latency));
  EXPECT_NE(text.find("train-labels-idx1-ubyte: byte 4: 39 labels; allowed: 40, one for each image of"),
            std::string::npos)
      << text;
}

TEST_F(EncodeImages, BothSetsHaveImagesOfOneSize) {
  write_bytes(images_ / "t10k-images-idx3-ubyte", images_of(12, kHeight, kWidth));
  const std::string text = refusal(options(ImageEncoder::latency));
  EXPECT_NE(text.find("test images of 4 x 6 pixels; allowed: 6 x 4"), std::string::npos) << text;
}

TEST_F(EncodeImages, DarkImagesAreEmptySamplesWithAWarning) {
  std::string bytes = images_of(12);
  std::fill_n(bytes.begin() + 16, kWidth * kHeight, '\1');
  write_bytes(images_ / "t10k-images-idx3-ubyte", bytes);
  encode_images(options(ImageEncoder::latency), listener_);
  ASSERT_EQ(listener_.warnings.size(), 1U);
  EXPECT_NE(listener_.warnings[0].find("1 of 52 images"), std::string::npos);
}

TEST_F(EncodeImages, OptionsAreCheckedBeforeAnyWork) {
  EncodeImagesOptions o = options(ImageEncoder::latency);
  o.encoding.steps = 0;
  EXPECT_NE(refusal(o).find("steps = 0"), std::string::npos);
  o = options(ImageEncoder::latency);
  o.threads = -1;
  EXPECT_NE(refusal(o).find("threads = -1"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

}  // namespace
}  // namespace spikeloom
