// Files with damaged bytes: read or refused, within seconds, and never a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "core/random.hpp"
#include "data/shd_file.hpp"
#include "files.hpp"

namespace spikeloom {
namespace {

/// Files of each layout, small, so that damage often meets a structure and not an event.
std::vector<std::vector<std::byte>> intact_files() {
  const TemporaryFolder folder;
  std::vector<std::vector<std::byte>> files;
  ShdWriter writer(folder / "a.h5");
  for (int sample = 0; sample < 30; ++sample) {
    writer.add(std::vector<Event>(static_cast<std::size_t>(sample),
                                  Event{sample * 10'000, static_cast<std::uint32_t>(sample)}),
               sample % 3, 1);
  }
  writer.finish({"zero", "one", "two"}, {{"f", 30, 170}});
  files.push_back(testing::read_bytes(folder / "a.h5"));
  for (const Hdf5Layout layout : {Hdf5Layout{0, 0}, Hdf5Layout{2, 6}}) {
    testing::ShdFile file = testing::small_shd_file();
    file.layout = layout;
    file.time_type = Hdf5Type::float32;
    file.save(folder / "b.h5");
    files.push_back(testing::read_bytes(folder / "b.h5"));
  }
  return files;
}

/// One to eight places changed: a bit flipped, a byte drawn, a run of zeros or ones, or a piece copied from elsewhere.
std::vector<std::byte> damaged(const std::vector<std::byte>& intact, RandomStream random) {
  std::vector<std::byte> bytes = intact;
  const std::uint64_t changes = 1 + random.below(8);
  for (std::uint64_t change = 0; change < changes; ++change) {
    const std::size_t at = random.below(bytes.size());
    const std::size_t run = std::min<std::size_t>(1 + random.below(16), bytes.size() - at);
    const std::span<std::byte> place = std::span(bytes).subspan(at, run);
    switch (random.below(5)) {
      case 0:
        place[0] ^= std::byte{1} << random.below(8);
        break;
      case 1:
        place[0] = static_cast<std::byte>(random.below(256));
        break;
      case 2:
        std::fill(place.begin(), place.end(), std::byte{0});
        break;
      case 3:
        std::fill(place.begin(), place.end(), std::byte{0xFF});
        break;
      default:
        std::copy_n(intact.begin() + static_cast<std::ptrdiff_t>(random.below(bytes.size() - run + 1)), run,
                    place.begin());
    }
  }
  return bytes;
}

TEST(DamagedHdf5, is_read_or_refused_but_never_crashes) {
  const char* wanted = std::getenv("SPIKELOOM_MUTATIONS");  // more for a long search
  const std::uint64_t mutations = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 300;
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "damaged.h5";
  const auto files = intact_files();
  std::uint64_t refused = 0;
  for (std::uint64_t number = 0; number < mutations; ++number) {
    testing::write_bytes(path, damaged(files[number % files.size()], RandomStream(1, "damage", number)));
    try {
      read_dataset(path, {});
    } catch (const UserError& error) {
      ++refused;
      EXPECT_TRUE(testing::contains(error.what(), path.string())) << error.what();
      if (testing::contains(error.what(), "library")) {
        RecordProperty("mutation_" + std::to_string(number), error.what());
        if (wanted != nullptr) std::printf("%llu: %s\n", static_cast<unsigned long long>(number), error.what());
      }
    }
  }
  if (wanted != nullptr)
    std::printf("%llu of %llu refused\n", static_cast<unsigned long long>(refused),
                static_cast<unsigned long long>(mutations));
  EXPECT_GT(refused, mutations / 10);  // else the damage did not reach the structures
}

}  // namespace
}  // namespace spikeloom
