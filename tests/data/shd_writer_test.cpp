// What ShdWriter leaves on disk.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "data/shd_file.hpp"

namespace spikeloom {
namespace {
TEST(ShdWriter, smoke) {
  auto path = std::filesystem::temp_directory_path() / "x.h5";
  ShdWriter w(path);
  std::vector<Event> events{{10, 3}, {1'500'000, 699}};
  for (int i = 0; i < 1000; ++i) w.add(events, i % 20, i % 12);
  w.add(std::span<const Event>{}, 1, 1);
  w.finish({"zero", "one"}, {{"f", 30, 170}});
}
}  // namespace
}  // namespace spikeloom
