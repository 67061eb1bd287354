#include "sound.hpp"

#include <sndfile.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <numbers>

namespace spikeloom::testing {

std::vector<float> sine(double hz, double seconds, int sample_rate, double amplitude) {
  std::vector<float> samples(static_cast<std::size_t>(seconds * sample_rate));
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] =
        static_cast<float>(amplitude * std::sin(2.0 * std::numbers::pi * hz * static_cast<double>(i) / sample_rate));
  return samples;
}

std::vector<float> babble(double seconds, int sample_rate, double amplitude) {
  std::vector<float> samples(static_cast<std::size_t>(seconds * sample_rate));
  double phase = 0.0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double t = static_cast<double>(i) / sample_rate;
    const double voice = 120.0 + 30.0 * std::sin(2.0 * std::numbers::pi * 1.5 * t);
    const double formants[2] = {500.0 + 200.0 * std::sin(7.0 * t), 1700.0 + 500.0 * std::cos(5.0 * t)};
    phase += 2.0 * std::numbers::pi * voice / sample_rate;
    double sum = 0.0;
    for (int harmonic = 1; harmonic * voice < 3300.0; ++harmonic) {
      double weight = 0.01;
      for (const double formant : formants) weight += 1.0 / (1.0 + std::pow((harmonic * voice - formant) / 80.0, 2.0));
      sum += weight * std::sin(harmonic * phase);
    }
    samples[i] = static_cast<float>(amplitude * sum);
  }
  return samples;
}

void write_sound(const std::filesystem::path& path, const std::vector<float>& samples, int sample_rate, int channels,
                 int format) {
  SF_INFO info{};
  info.samplerate = sample_rate;
  info.channels = channels;
  info.format = format;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  ASSERT_NE(file, nullptr) << sf_strerror(nullptr);
  sf_write_float(file, samples.data(), static_cast<sf_count_t>(samples.size()));
  sf_close(file);
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace spikeloom::testing
