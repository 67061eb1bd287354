// N-MNIST recordings and folders, made up and real.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "core/random.hpp"
#include "data/nmnist_folder.hpp"
#include "files.hpp"

namespace spikeloom {
namespace {

using testing::contains;
using testing::refusal;

std::vector<std::byte> record(int x, int y, int polarity, std::uint32_t time) {
  std::vector<std::byte> bytes;
  for (const std::uint32_t value :
       {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
        static_cast<std::uint32_t>(polarity) << 7 | time >> 16, time >> 8 & 0xFF, time & 0xFF}) {
    bytes.push_back(static_cast<std::byte>(value));
  }
  return bytes;
}

std::vector<std::byte> joined(const std::vector<std::vector<std::byte>>& records) {
  std::vector<std::byte> bytes;
  for (const auto& part : records) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

void save(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  testing::write_bytes(path, bytes);
}

TEST(Nmnist, every_field_of_a_record_reaches_the_event) {
  RandomStream random(1, "nmnist");
  std::vector<std::vector<std::byte>> records;
  std::vector<Event> expected;
  std::int64_t base = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto time = static_cast<std::uint32_t>(random.below(1 << 23));
    if (i % 97 == 5) {
      records.push_back(record(static_cast<int>(random.below(256)), 240, static_cast<int>(random.below(2)), time));
      base += 8192;
      continue;
    }
    const int x = static_cast<int>(random.below(34));
    const int y = static_cast<int>(random.below(34));
    const int polarity = static_cast<int>(random.below(2));
    records.push_back(record(x, y, polarity, time));
    expected.push_back({base + time, static_cast<std::uint32_t>(polarity * 1156 + y * 34 + x)});
  }
  const std::vector<Event> events = decode_nmnist(joined(records), "test");
  ASSERT_EQ(events.size(), expected.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].time_us, expected[i].time_us);
    EXPECT_EQ(events[i].channel, expected[i].channel);
  }
}

TEST(Nmnist, a_recording_of_no_bytes_has_no_events) { EXPECT_TRUE(decode_nmnist({}, "test").empty()); }

TEST(Nmnist, a_cut_off_recording_names_the_byte) {
  const TemporaryFolder folder;
  auto bytes = joined({record(1, 2, 0, 3), record(4, 5, 1, 6)});
  bytes.pop_back();
  save(folder / "Train/3/1.bin", bytes);
  const std::string text = refusal(folder.path());
  EXPECT_TRUE(contains(text, "Train/3/1.bin: 9 bytes, the event at byte 5 is cut off; allowed: a multiple of 5"))
      << text;
}

TEST(Nmnist, a_coordinate_beyond_33_names_byte_and_value) {
  const TemporaryFolder folder;
  save(folder / "0/1.bin", joined({record(33, 33, 1, 3), record(34, 5, 1, 6)}));
  EXPECT_TRUE(contains(refusal(folder.path()), "0/1.bin: byte 5: x = 34; allowed: 0 to 33")) << refusal(folder.path());
  save(folder / "0/1.bin", joined({record(33, 33, 1, 3), record(3, 239, 1, 6)}));
  EXPECT_TRUE(contains(refusal(folder.path()), "0/1.bin: byte 6: y = 239; allowed: 0 to 33"));
}

TEST(Nmnist, folders_are_read_in_one_order_and_part) {
  const TemporaryFolder folder;
  const auto one = [](int x) { return record(x, 0, 0, 1); };
  save(folder / "Test/1/5.bin", one(0));
  save(folder / "Train/10/1.bin", one(1));
  save(folder / "Train/2/100.bin", one(2));
  save(folder / "Train/2/00042.bin", one(3));
  save(folder / "Train/2/9.bin", {});
  save(folder / "Train/.DS_Store", one(0));
  save(folder / "Train/README", one(0));
  const auto labels_and_names = [&](DataPart part) {
    std::vector<std::string> result;
    for (const NmnistFile& file : list_nmnist(folder.path(), part)) {
      EXPECT_EQ(std::to_string(file.label), file.path.parent_path().filename());
      result.push_back(file.path.lexically_relative(folder.path()));
    }
    return result;
  };
  const std::vector<std::string> train{"Train/2/9.bin", "Train/2/00042.bin", "Train/2/100.bin", "Train/10/1.bin"};
  EXPECT_EQ(labels_and_names(DataPart::train), train);
  EXPECT_EQ(labels_and_names(DataPart::test), (std::vector<std::string>{"Test/1/5.bin"}));
  std::vector<std::string> all = train;
  all.push_back("Test/1/5.bin");
  EXPECT_EQ(labels_and_names(DataPart::all), all);

  const SpikeDataset data = read_dataset(folder.path(), {});
  EXPECT_EQ(data.size(), 5U);
  EXPECT_EQ(data.recorded_channels(), 2312);
  EXPECT_EQ(data.events(0), 0U);  // the recording of no bytes
  EXPECT_EQ(data.speaker(0), -1);
  EXPECT_TRUE(contains(data.source(3), "Train/10/1.bin"));
}

TEST(Nmnist, one_part_alone_and_a_bare_folder_of_labels_are_read) {
  const TemporaryFolder folder;
  save(folder / "Test/1/5.bin", record(1, 1, 1, 1));
  EXPECT_EQ(read_dataset(folder.path(), {}).size(), 1U);
  ReadOptions options;
  options.part = DataPart::train;
  EXPECT_TRUE(contains(refusal(folder.path(), options), "has no folder Train"));
  EXPECT_EQ(read_dataset(folder / "Test", options).size(), 1U);  // label folders have no parts
}

TEST(Nmnist, folders_that_are_none_are_refused) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(refusal(folder.path()), "no recordings"));
  save(folder / "seven/1.bin", {});
  EXPECT_TRUE(contains(refusal(folder.path()), "seven: not a label"));
  std::filesystem::remove_all(folder / "seven");
  save(folder / "7/1.txt", {});
  EXPECT_TRUE(contains(refusal(folder.path()), "1.txt: not a recording"));
  std::filesystem::remove_all(folder / "7");
  std::filesystem::create_directories(folder / "7/1.bin");
  EXPECT_TRUE(contains(refusal(folder.path()), "1.bin: not a file"));
  std::filesystem::remove_all(folder / "7");
  save(folder / "99999999999999999999999/1.bin", {});
  EXPECT_TRUE(contains(refusal(folder.path()), "not a label"));
}

TEST(Nmnist, labels_and_channels_of_the_user_are_checked) {
  const TemporaryFolder folder;
  save(folder / "7/1.bin", record(1, 1, 1, 1));
  ReadOptions options;
  options.classes = 7;
  EXPECT_TRUE(contains(refusal(folder.path(), options), "7: label 7; allowed: 0 to 6"));
  options.classes = 8;
  options.channels = 2311;
  EXPECT_TRUE(contains(refusal(folder.path(), options), "2311 channels for N-MNIST; allowed: at least 2312"));
  options.channels = 3000;
  EXPECT_EQ(read_dataset(folder.path(), options).channels(), 3000);
}

/// The real recordings, parsed a second time and in another way: whole file as text, one division per field.
TEST(Nmnist, real_recordings_have_the_counts_of_a_plain_parse) {
  const std::filesystem::path folder = std::filesystem::path(SPIKELOOM_SOURCE_DIR) / "../shared/data/nmnist-small";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no N-MNIST sample at " << folder;
  std::uint64_t files = 0;
  std::uint64_t events = 0;
  std::uint64_t late = 0;
  std::vector<std::uint64_t> per_class(10, 0);
  std::vector<std::uint64_t> per_channel(2312, 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    ++per_class.at(std::stoul(entry.path().parent_path().filename()));
    std::ifstream stream(entry.path(), std::ios::binary);
    std::int64_t base = 0;
    for (unsigned char b[5]; stream.read(reinterpret_cast<char*>(b), 5);) {
      if (b[1] == 240) {
        base += 8192;
        continue;
      }
      ++events;
      late += base + b[2] % 128 * 65536 + b[3] * 256 + b[4] >= 300'000 ? 1 : 0;
      ++per_channel.at(static_cast<std::size_t>(b[2] / 128 * 1156 + b[1] * 34 + b[0]));
    }
  }
  ReadOptions options;
  options.binning = {3'000, 100, 1, true};  // counts: nothing merges
  const SpikeDataset data = read_dataset(folder, options);
  EXPECT_EQ(data.size(), 860U);
  EXPECT_EQ(data.size(), files);
  EXPECT_EQ(data.report().events, events);
  EXPECT_EQ(data.report().dropped_late, late);
  EXPECT_EQ(data.report().spikes, events - late);
  std::vector<std::uint64_t> labels(10, 0);
  options.binning.steps = 1000;
  const SpikeDataset whole = read_dataset(folder, options);
  EXPECT_EQ(whole.report().dropped_late, 0U);
  std::vector<std::uint64_t> channels(2312, 0);
  for (std::size_t sample = 0; sample < whole.size(); ++sample) {
    ++labels.at(static_cast<std::size_t>(whole.label(sample)));
    for (const std::uint32_t id : whole.ids(sample)) ++channels.at(id);
  }
  EXPECT_EQ(labels, per_class);
  EXPECT_EQ(channels, per_channel);
  options.part = DataPart::train;
  EXPECT_EQ(read_dataset(folder, options).size(), 800U);
  options.part = DataPart::test;
  EXPECT_EQ(read_dataset(folder, options).size(), 60U);
}

}  // namespace
}  // namespace spikeloom
