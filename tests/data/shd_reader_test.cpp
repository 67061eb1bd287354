// Every form of SHD file that is valid gives the same recordings, and every one that is not says where and why.
#include "data/shd_reader.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <limits>

#include "data/shd_file.hpp"
#include "files.hpp"

namespace spikeloom {
namespace {

using testing::contains;
using testing::refusal;
using testing::ShdFile;
using testing::small_shd_file;

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

struct Recording {
  std::vector<std::pair<std::int64_t, std::uint32_t>> events;
  int label;
  int speaker;
  bool operator==(const Recording&) const = default;
};

std::vector<Recording> read(const std::filesystem::path& path, bool isolated = true, ShdReadOptions options = {}) {
  std::vector<Recording> result;
  (isolated ? read_shd_isolated : read_shd)(path, options, [&](std::span<const Event> events, int label, int speaker) {
    result.push_back({{}, label, speaker});
    for (const Event& event : events) result.back().events.emplace_back(event.time_us, event.channel);
  });
  return result;
}

const std::vector<Recording> kSmall = {
    {{{250'000, 7}, {15'625, 699}, {500'000, 0}}, 2, 3}, {{}, 0, 4}, {{{750'000, 12}, {125'000, 12}}, 1, 3}};

TEST(ShdReader, every_type_and_layout_gives_the_same_recordings) {
  const TemporaryFolder folder;
  for (const Hdf5Type time : {Hdf5Type::float16, Hdf5Type::float32, Hdf5Type::float64}) {
    for (const Hdf5Type unit :
         {Hdf5Type::int16, Hdf5Type::uint16, Hdf5Type::int32, Hdf5Type::uint32, Hdf5Type::int64, Hdf5Type::uint64}) {
      for (const Hdf5Type label : {Hdf5Type::uint8, Hdf5Type::int64, Hdf5Type::float32, Hdf5Type::float64}) {
        for (const Hdf5Layout layout : {Hdf5Layout{0, 0}, Hdf5Layout{2, 0}, Hdf5Layout{64, 9}}) {
          ShdFile file = small_shd_file();
          file.time_type = time;
          file.unit_type = unit;
          file.label_type = label;
          file.layout = layout;
          file.save(folder / "a.h5");
          EXPECT_EQ(read(folder / "a.h5", false), kSmall)
              << static_cast<int>(time) << " " << static_cast<int>(unit) << " " << layout.chunk;
        }
      }
    }
  }
}

TEST(ShdReader, a_child_process_reads_what_this_one_reads) {
  const TemporaryFolder folder;
  ShdWriter writer(folder / "a.h5");
  for (int sample = 0; sample < 200; ++sample) {
    std::vector<Event> events;
    for (int i = 0; i < sample * 50; ++i)
      events.push_back({(i * 7919) % 1'400'000, static_cast<std::uint32_t>(i * 31 % 700)});
    writer.add(events, sample % 20, sample % 12);
  }
  writer.finish({}, {});
  const std::vector<Recording> here = read(folder / "a.h5", false);
  EXPECT_EQ(here.size(), 200U);
  EXPECT_EQ(here, read(folder / "a.h5", true));
}

TEST(ShdReader, halves_are_widened_before_they_become_microseconds) {
  const TemporaryFolder folder;
  ShdFile file;
  file.units.emplace_back();
  file.times.emplace_back();
  for (std::uint16_t bits = 0; bits < float16_bits(4.0); bits = static_cast<std::uint16_t>(bits + 37)) {
    file.times[0].push_back(float16_value(bits));
    file.units[0].push_back(0);
  }
  file.labels = {0};
  file.save(folder / "a.h5");
  const std::vector<Recording> recordings = read(folder / "a.h5");
  ASSERT_EQ(recordings[0].events.size(), file.times[0].size());
  for (std::size_t i = 0; i < file.times[0].size(); ++i) {
    EXPECT_EQ(recordings[0].events[i].first, std::llround(file.times[0][i] * 1e6));
  }
}

TEST(ShdReader, a_file_without_speakers_has_unknown_ones) {
  const TemporaryFolder folder;
  ShdFile file = small_shd_file();
  file.speakers.reset();
  file.save(folder / "a.h5");
  for (const Recording& recording : read(folder / "a.h5")) EXPECT_EQ(recording.speaker, -1);
}

TEST(ShdReader, reading_ends_when_progress_throws) {
  const TemporaryFolder folder;
  ShdFile file;
  for (int sample = 0; sample < 100; ++sample) {
    file.times.push_back({0.5});
    file.units.push_back({1});
    file.labels.push_back(0);
  }
  file.save(folder / "a.h5");
  ReadOptions options;
  std::vector<std::size_t> told;
  options.progress = [&](std::size_t recordings) {
    told.push_back(recordings);
    if (told.size() == 2) throw Interrupted("enough");
  };
  EXPECT_THROW(read_dataset(folder / "a.h5", options), Interrupted);
  EXPECT_EQ(told, (std::vector<std::size_t>{32, 64}));
}

TEST(ShdReader, a_whole_file_packed_with_gzip_is_read) {
  const TemporaryFolder folder;
  small_shd_file().save(folder / "a.h5");
  const auto bytes = testing::read_bytes(folder / "a.h5");
  const gzFile packed = gzopen((folder / "a.h5.gz").c_str(), "wb");
  gzwrite(packed, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(packed);
  ReadOptions interrupted;
  interrupted.progress = [](std::size_t) { throw Interrupted("while unpacking"); };
  EXPECT_THROW(read_dataset(folder / "a.h5.gz", interrupted), Interrupted);
  const SpikeDataset data = read_dataset(folder / "a.h5.gz", {});
  EXPECT_EQ(data.size(), 3U);
  EXPECT_EQ(data.report().events, 5U);
  EXPECT_TRUE(contains(data.source(1), "a.h5.gz, sample 1"));

  auto half = testing::read_bytes(folder / "a.h5.gz");
  auto broken = half;
  half.resize(half.size() / 2);
  testing::write_bytes(folder / "half.h5.gz", half);
  EXPECT_TRUE(contains(refusal(folder / "half.h5.gz"), "half.h5.gz: damaged gzip"));
  broken[broken.size() - 6] ^= std::byte{1};  // the check sum
  testing::write_bytes(folder / "broken.h5.gz", broken);
  EXPECT_TRUE(contains(refusal(folder / "broken.h5.gz"), "damaged gzip"));
}

TEST(ShdReader, channels_and_classes_of_the_user_replace_the_formats) {
  const TemporaryFolder folder;
  ShdFile file = small_shd_file();
  file.units[0][1] = 700;
  file.save(folder / "a.h5");
  EXPECT_TRUE(contains(refusal(folder / "a.h5"), "unit 700; allowed: 0 to 699"));
  ReadOptions options;
  options.channels = 701;
  EXPECT_EQ(read_dataset(folder / "a.h5", options).channels(), 701);
  options.channels = 700;
  EXPECT_TRUE(contains(refusal(folder / "a.h5", options), "sample 0, event 1: unit 700"));
  options.channels = 701;
  options.classes = 2;
  EXPECT_TRUE(contains(refusal(folder / "a.h5", options), "labels, sample 0: 2; allowed: whole numbers from 0 to 1"));
  options.classes = 3;
  EXPECT_EQ(read_dataset(folder / "a.h5", options).largest_label(), 2);
}

struct Defect {
  const char* name;
  void (*make)(ShdFile&);
  const char* message;
};

class WrongShdFile : public ::testing::TestWithParam<Defect> {};

TEST_P(WrongShdFile, is_refused_with_file_place_value_and_range) {
  const TemporaryFolder folder;
  ShdFile file = small_shd_file();
  GetParam().make(file);
  file.save(folder / "wrong.h5");
  const std::string text = refusal(folder / "wrong.h5");
  EXPECT_TRUE(contains(text, (folder / "wrong.h5").string())) << text;
  EXPECT_TRUE(contains(text, GetParam().message)) << text;
  EXPECT_FALSE(contains(text, "\n")) << text;
}

const Defect kDefects[] = {
    {"no_times", [](ShdFile& f) { f.with_times = false; }, "spikes/times: missing"},
    {"no_units", [](ShdFile& f) { f.with_units = false; }, "spikes/units: missing"},
    {"no_labels", [](ShdFile& f) { f.with_labels = false; }, "labels: missing"},
    {"no_recordings", [](ShdFile& f) { f = {}; }, "no recordings"},
    {"unit_beyond", [](ShdFile& f) { f.units[2][1] = 700; },
     "spikes/units, sample 2, event 1: unit 700; allowed: 0 to 699"},
    {"unit_far_beyond",
     [](ShdFile& f) {
       f.unit_type = Hdf5Type::uint64;
       f.units[2][0] = 0x1p63;
     },
     "spikes/units, sample 2, event 0: unit 9223372036854775807; allowed: 0 to 699"},
    {"unit_negative",
     [](ShdFile& f) {
       f.unit_type = Hdf5Type::int32;
       f.units[0][2] = -1;
     },
     "spikes/units, sample 0, event 2: unit -1; allowed: 0 to 699"},
    {"time_negative", [](ShdFile& f) { f.times[2][0] = -0.5; },
     "spikes/times, sample 2, event 0: -0.5 s; allowed: 0 to 1000000"},
    {"time_nan", [](ShdFile& f) { f.times[2][1] = kNan; }, "spikes/times, sample 2, event 1: nan s"},
    {"time_infinite", [](ShdFile& f) { f.times[0][0] = kInfinity; }, "spikes/times, sample 0, event 0: inf s"},
    {"time_minus_infinite",
     [](ShdFile& f) {
       f.time_type = Hdf5Type::float64;
       f.times[0][0] = -kInfinity;
     },
     "spikes/times, sample 0, event 0: -inf s"},
    {"time_too_late",
     [](ShdFile& f) {
       f.time_type = Hdf5Type::float64;
       f.times[0][0] = 1e300;
     },
     "spikes/times, sample 0, event 0: 1e+300 s; allowed: 0 to 1000000"},
    {"fewer_units_in_a_sample", [](ShdFile& f) { f.units[2].pop_back(); }, "sample 2: 2 times but 1 units"},
    {"units_of_an_empty_sample", [](ShdFile& f) { f.units[1].push_back(1); }, "sample 1: 0 times but 1 units"},
    {"fewer_unit_samples", [](ShdFile& f) { f.units.pop_back(); }, "spikes/units: 2 entries for 3 recordings"},
    {"fewer_labels", [](ShdFile& f) { f.labels.pop_back(); }, "labels: 2 entries for 3 recordings"},
    {"more_labels", [](ShdFile& f) { f.labels.push_back(0); }, "labels: 4 entries for 3 recordings"},
    {"fewer_speakers", [](ShdFile& f) { f.speakers->pop_back(); }, "extra/speaker: 2 entries for 3 recordings"},
    {"label_negative",
     [](ShdFile& f) {
       f.label_type = Hdf5Type::int16;
       f.labels[1] = -3;
     },
     "labels, sample 1: -3; allowed: whole numbers from 0 to 65535"},
    {"label_nan",
     [](ShdFile& f) {
       f.label_type = Hdf5Type::float32;
       f.labels[1] = kNan;
     },
     "labels, sample 1: nan; allowed"},
    {"label_infinite",
     [](ShdFile& f) {
       f.label_type = Hdf5Type::float64;
       f.labels[1] = kInfinity;
     },
     "labels, sample 1: inf; allowed"},
    {"label_not_whole",
     [](ShdFile& f) {
       f.label_type = Hdf5Type::float64;
       f.labels[2] = 1.5;
     },
     "labels, sample 2: 1.5; allowed: whole numbers"},
    {"label_too_large",
     [](ShdFile& f) {
       f.label_type = Hdf5Type::int64;
       f.labels[2] = 4294967297.0;
     },
     "labels, sample 2: 4294967297; allowed"},
    {"whole_number_times", [](ShdFile& f) { f.time_type = Hdf5Type::int32; }, "spikes/times: not floating-point"},
    {"real_units", [](ShdFile& f) { f.unit_type = Hdf5Type::float32; }, "spikes/units: not whole numbers"},
};

INSTANTIATE_TEST_SUITE_P(ShdReader, WrongShdFile, ::testing::ValuesIn(kDefects),
                         [](const auto& defect) { return defect.param.name; });

TEST(ShdReader, refuses_what_is_no_hdf5_file) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(refusal(folder / "missing.h5"), "missing.h5: no such file"));
  testing::write_text(folder / "empty.h5", "");
  EXPECT_TRUE(contains(refusal(folder / "empty.h5"), "empty.h5: empty (0 bytes)"));
  testing::write_text(folder / "text.h5", "these are not the bytes you are looking for\n");
  EXPECT_TRUE(contains(refusal(folder / "text.h5"), "text.h5: not an HDF5 file"));
  testing::write_text(folder / "signature.h5", "\x89HDF\r\n\x1a\n");
  EXPECT_TRUE(contains(refusal(folder / "signature.h5"), "signature.h5: damaged"));
  testing::write_bytes(folder / "zeros.h5", std::vector<std::byte>(4096));
  EXPECT_TRUE(contains(refusal(folder / "zeros.h5"), "zeros.h5: not an HDF5 file"));
  EXPECT_TRUE(contains(refusal("/dev/null"), "/dev/null: neither a file nor a folder"));
}

TEST(ShdReader, refuses_arrays_that_are_not_lists_per_recording) {
  const TemporaryFolder folder;
  Hdf5Writer flat;
  flat.create_group("spikes");
  flat.write("spikes/times", std::vector<double>{0.0, 0.5});
  flat.write("spikes/units", std::vector<std::uint16_t>{0, 5});
  flat.write("labels", std::vector<std::uint16_t>{0, 1});
  testing::write_bytes(folder / "flat.h5", flat.image());
  EXPECT_TRUE(contains(refusal(folder / "flat.h5"), "spikes/times: not of variable length"));

  Hdf5Writer groups;
  for (const char* name : {"spikes", "spikes/times", "spikes/units", "labels"}) groups.create_group(name);
  testing::write_bytes(folder / "groups.h5", groups.image());
  EXPECT_TRUE(contains(refusal(folder / "groups.h5"), "spikes/times can't be opened as an array"));
}

TEST(ShdReader, any_front_part_of_a_file_is_refused) {
  const TemporaryFolder folder;
  ShdWriter writer(folder / "whole.h5");
  for (int sample = 0; sample < 40; ++sample) writer.add(std::vector<Event>(100, Event{sample * 1000, 5}), 0, 0);
  writer.finish({"zero"}, {});
  const auto bytes = testing::read_bytes(folder / "whole.h5");
  for (std::size_t part = 1; part < 16; ++part) {
    testing::write_bytes(folder / "part.h5", std::span(bytes).first(bytes.size() * part / 16));
    EXPECT_TRUE(contains(refusal(folder / "part.h5"), "part.h5: ")) << part;
  }
}

}  // namespace
}  // namespace spikeloom
