// Agreement with what SHD's own encoder makes of four recordings: tables in ../shared/data/shd-encoder, means over ten
// of its seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "core/worker_team.hpp"
#include "data/encode/audio_file.hpp"
#include "data/encode/inner_ear.hpp"

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* name;
  const char* file;
  int column;
};

class ReferenceEncoder : public ::testing::TestWithParam<Case> {
 protected:
  static constexpr int kSeeds = 10;

  void SetUp() override {
    const fs::path data = shared_data();
    if (data.empty())
      GTEST_SKIP() << "the reference encoder's tables, shared/data/shd-encoder, are not in a folder above "
                   << SPIKELOOM_SOURCE_DIR << "; nothing was compared";
    channel_reference_ = column(data / "shd-encoder" / "channel_counts.csv");
    rate_reference_ = column(data / "shd-encoder" / "rate_10ms.csv");
    ASSERT_EQ(channel_reference_.size(), 700U);
    channels_.assign(channel_reference_.size(), 0.0);
    rate_.assign(rate_reference_.size(), 0.0);
    const Recording recording = read_audio(data / GetParam().file);
    WorkerTeam team(1);
    static const auto tables = make_ear_tables(team);
    InnerEar ear(tables);
    for (int seed = 1; seed <= kSeeds; ++seed) {
      for (const Event& event : ear.encode(recording.samples, recording.sample_rate, seed, 0)) {
        channels_[event.channel] += 1.0 / kSeeds;
        const auto bin = static_cast<std::size_t>(event.time_us / 10'000);
        if (bin < rate_.size()) rate_[bin] += 1.0 / kSeeds;
      }
    }
  }

  static fs::path shared_data() {
    for (fs::path folder = fs::path(SPIKELOOM_SOURCE_DIR).parent_path(); folder != folder.root_path();
         folder = folder.parent_path())
      if (fs::exists(folder / "shared" / "data" / "shd-encoder" / "channel_counts.csv"))
        return folder / "shared" / "data";
    return {};
  }

  static std::vector<double> column(const fs::path& path) {
    std::ifstream file(path);
    std::vector<double> values;
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream cells(line);
      std::string cell;
      for (int i = 0; i <= GetParam().column; ++i) std::getline(cells, cell, ',');
      if (!cell.empty()) values.push_back(std::stod(cell));
    }
    return values;
  }

  static double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
    const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
    double ab = 0.0, aa = 0.0, bb = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      ab += (a[i] - mean_a) * (b[i] - mean_b);
      aa += (a[i] - mean_a) * (a[i] - mean_a);
      bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / std::sqrt(aa * bb);
  }

  std::vector<double> channel_reference_, rate_reference_, channels_, rate_;
};

TEST_P(ReferenceEncoder, EventsPerChannelAgree) { EXPECT_GT(correlation(channels_, channel_reference_), 0.98); }

TEST_P(ReferenceEncoder, EventsOverTimeAgree) { EXPECT_GT(correlation(rate_, rate_reference_), 0.99); }

TEST_P(ReferenceEncoder, TotalsAgree) {
  const double total = std::accumulate(channels_.begin(), channels_.end(), 0.0);
  const double reference = std::accumulate(channel_reference_.begin(), channel_reference_.end(), 0.0);
  EXPECT_NEAR(total / reference, 1.0, 0.03);
}

INSTANTIATE_TEST_SUITE_P(Recordings, ReferenceEncoder,
                         ::testing::Values(Case{"spoken_digit", "shd-encoder/spoken_digit.flac", 1},
                                           Case{"seven_jackson", "fsdd/7_jackson_0.wav", 2},
                                           Case{"three_theo", "fsdd/3_theo_5.wav", 3},
                                           Case{"six_george", "fsdd/6_george_9.wav", 4}),
                         [](const auto& parameter) { return std::string(parameter.param.name); });

}  // namespace
}  // namespace spikeloom
