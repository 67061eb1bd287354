// Figures survive a file, and no damaged file is believed.
#include "plan/figures_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "made_up_machine.hpp"

namespace spikeloom::testing {
namespace {

namespace fs = std::filesystem;

class FiguresFile : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string text() const {
    std::ifstream stream(path_);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  const fs::path folder_ = fs::path(::testing::TempDir()) / ("spikeloom-figures-" + std::to_string(::getpid()));
  const fs::path path_ = folder_ / "deep" / "machine.json";
};

TEST_F(FiguresFile, GivesBackWhatWasWritten) {
  const MachineFigures figures = made_up_figures(4);
  ASSERT_TRUE(save_figures(figures, path_, "program"));
  const std::optional<MachineFigures> kept = load_figures(path_, "program");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->l2_bandwidth, figures.l2_bandwidth);
  EXPECT_EQ(kept->workers, 4);
  EXPECT_EQ(kept->of_width(64).forward_rows.y, figures.of_width(64).forward_rows.y);
  EXPECT_EQ(kept->adam_all_ns.x, figures.adam_all_ns.x);
}

TEST_F(FiguresFile, OfAnotherProgramIsNotUsed) {
  ASSERT_TRUE(save_figures(made_up_figures(1), path_, "program"));
  EXPECT_FALSE(load_figures(path_, "another"));
  EXPECT_FALSE(load_figures(folder_ / "none.json", "program"));
  EXPECT_FALSE(load_figures({}, "program"));
}

TEST_F(FiguresFile, DamagedInAnyPlaceIsNotUsed) {
  ASSERT_TRUE(save_figures(made_up_figures(1), path_, "program"));
  const std::string whole = text();
  for (std::size_t size = 0; size + 2 < whole.size(); size += 97) {
    write(whole.substr(0, size));
    EXPECT_FALSE(load_figures(path_, "program")) << size;
  }
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"l2_bandwidth", "l2_width"},
                                 {"100.0", "-1.0"},
                                 {"100.0", "\"fast\""},
                                 {"\"format\": ", "\"format\": 9"},
                                 {"\"x\"", "\"z\""}}) {
    std::string changed = whole;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    write(changed);
    EXPECT_FALSE(load_figures(path_, "program")) << from << " -> " << to;
  }
}

TEST_F(FiguresFile, ThatCannotBeWrittenIsNoError) {
  std::ofstream(folder_ / "file") << "";
  EXPECT_FALSE(save_figures(made_up_figures(1), folder_ / "file" / "machine.json", "program"));
  EXPECT_FALSE(save_figures(made_up_figures(1), {}, "program"));
}

TEST_F(FiguresFile, HasItsPlaceBelowTheCacheFolder) {
  ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  const fs::path path = figures_path(made_up_machine(2));
  EXPECT_EQ(path.parent_path(), folder_ / "spikeloom");
  EXPECT_NE(path, figures_path(made_up_machine(3))) << "another set of cores gives other figures";
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", folder_.c_str(), 1);
  EXPECT_EQ(figures_path(made_up_machine(2)).parent_path(), folder_ / ".cache" / "spikeloom");
}

TEST(Curve, IsStraightBetweenItsPoints) {
  const Curve curve{{1.0, 3.0, 5.0}, {10.0, 20.0, 40.0}};
  EXPECT_EQ(curve.at(0.0), 10.0);
  EXPECT_EQ(curve.at(2.0), 15.0);
  EXPECT_EQ(curve.at(4.0), 30.0);
  EXPECT_EQ(curve.at(6.0), 50.0);
  EXPECT_EQ(curve.at_most_last(6.0), 40.0);
  EXPECT_EQ(Curve{}.at(1.0), 0.0);
}

}  // namespace
}  // namespace spikeloom::testing
