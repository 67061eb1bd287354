// Sounds and files for the encoder's tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/progress.hpp"
#include "support/temporary_folder.hpp"

namespace spikeloom::testing {

std::vector<float> sine(double hz, double seconds, int sample_rate, double amplitude = 0.5);
/// A vowel-like sound that moves: harmonics of a gliding voice under two moving formants, all below 3.5 kHz.
std::vector<float> babble(double seconds, int sample_rate, double amplitude = 0.3);

/// `format` is libsndfile's: SF_FORMAT_WAV | SF_FORMAT_PCM_16, ...; samples are interleaved.
void write_sound(const std::filesystem::path& path, const std::vector<float>& samples, int sample_rate, int channels,
                 int format);

void write_bytes(const std::filesystem::path& path, const std::string& bytes);
std::string read_bytes(const std::filesystem::path& path);

/// Keeps what it hears.
class RecordingListener final : public ProgressListener {
 public:
  void progress(std::string_view, std::uint64_t done, std::uint64_t total, std::string_view) override {
    reported.push_back(done);
    last_total = total;
  }
  void warning(std::string_view text) override { warnings.emplace_back(text); }
  void note(std::string_view text) override { notes.emplace_back(text); }

  std::vector<std::uint64_t> reported;
  std::uint64_t last_total = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;
};

/// The text of the UserError that `work` throws; fails the test if it throws none.
template <class Work>
std::string user_error(Work&& work);

}  // namespace spikeloom::testing

#include <gtest/gtest.h>

#include <spikeloom/error.hpp>

template <class Work>
std::string spikeloom::testing::user_error(Work&& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no UserError";
  return {};
}
