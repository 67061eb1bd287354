// What ShdWriter leaves on disk: SHD's layout, the same bytes each time, all or nothing.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "core/random.hpp"
#include "data/shd_file.hpp"
#include "data/shd_reader.hpp"
#include "files.hpp"

namespace spikeloom {
namespace {

struct Recording {
  std::vector<Event> events;
  int label;
  int speaker;
};

std::vector<Recording> recordings(std::size_t count, std::uint64_t seed) {
  RandomStream random(seed, "recordings");
  std::vector<Recording> result(count);
  for (Recording& recording : result) {
    recording.label = static_cast<int>(random.below(20));
    recording.speaker = static_cast<int>(random.below(12));
    recording.events.resize(random.below(60));
    for (Event& event : recording.events)
      event = {static_cast<std::int64_t>(random.below(2'000'000)), static_cast<std::uint32_t>(random.below(700))};
  }
  return result;
}

void write(const std::filesystem::path& path, const std::vector<Recording>& all) {
  ShdWriter writer(path);
  for (const Recording& recording : all) writer.add(recording.events, recording.label, recording.speaker);
  writer.finish({"zero", "one", "f\xC3\xBCnf"}, {{"f", 30, 170}, {"m", 41, 183}});
}

TEST(ShdWriter, what_is_written_is_read_back_to_the_precision_of_a_half) {
  const TemporaryFolder folder;
  const std::vector<Recording> all = recordings(700, 1);  // several slabs, the last one not full
  write(folder / "a.h5", all);
  std::size_t sample = 0;
  read_shd(folder / "a.h5", {}, [&](std::span<const Event> events, int label, int speaker) {
    ASSERT_LT(sample, all.size());
    EXPECT_EQ(label, all[sample].label);
    EXPECT_EQ(speaker, all[sample].speaker);
    ASSERT_EQ(events.size(), all[sample].events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i].channel, all[sample].events[i].channel);
      EXPECT_LE(std::abs(events[i].time_us - all[sample].events[i].time_us),
                489);  // half of 2^-10 s, and rounding to whole us
    }
    ++sample;
  });
  EXPECT_EQ(sample, all.size());
}

TEST(ShdWriter, has_the_arrays_of_shd) {
  const TemporaryFolder folder;
  write(folder / "a.h5", recordings(5, 1));
  const Hdf5Reader file(folder / "a.h5");
  for (const char* name : {"spikes/times", "spikes/units"}) {
    EXPECT_TRUE(file.array(name).sequences()) << name;
    EXPECT_EQ(file.array(name).size(), 5U) << name;
  }
  EXPECT_EQ(file.array("spikes/times").kind(), Hdf5Kind::floating);
  EXPECT_EQ(file.array("spikes/units").kind(), Hdf5Kind::integer);
  EXPECT_EQ(file.array("labels").size(), 5U);
  EXPECT_EQ(file.array("extra/speaker").size(), 5U);
  EXPECT_EQ(file.strings("extra/keys"), (std::vector<std::string>{"zero", "one", "f\xC3\xBCnf"}));
  EXPECT_EQ(file.strings("extra/meta_info/gender"), (std::vector<std::string>{"f", "m"}));
  EXPECT_EQ(file.array("extra/meta_info/age").integers(0, 2), (std::vector<std::int64_t>{30, 41}));
  EXPECT_EQ(file.array("extra/meta_info/body_height").integers(0, 2), (std::vector<std::int64_t>{170, 183}));
}

TEST(ShdWriter, the_same_calls_write_the_same_bytes_whenever_made) {
  const TemporaryFolder folder;
  const std::vector<Recording> all = recordings(300, 2);
  write(folder / "a.h5", all);
  ::sleep(1);  // a time stamp would differ
  write(folder / "b.h5", all);
  EXPECT_TRUE(testing::read_bytes(folder / "a.h5") == testing::read_bytes(folder / "b.h5"));
  write(folder / "c.h5", recordings(300, 3));
  EXPECT_FALSE(testing::read_bytes(folder / "a.h5") == testing::read_bytes(folder / "c.h5"));
}

TEST(ShdWriter, both_forms_of_events_write_the_same_bytes) {
  const TemporaryFolder folder;
  ShdWriter events(folder / "a.h5");
  ShdWriter arrays(folder / "b.h5");
  events.add(std::vector<Event>{{250'000, 3}, {1'300'000, 699}}, 1, 2);
  arrays.add(std::vector<double>{0.25, 1.3}, std::vector<std::uint16_t>{3, 699}, 1, 2);
  events.finish({}, {});
  arrays.finish({}, {});
  EXPECT_TRUE(testing::read_bytes(folder / "a.h5") == testing::read_bytes(folder / "b.h5"));
}

TEST(ShdWriter, a_file_of_no_recordings_is_valid) {
  const TemporaryFolder folder;
  ShdWriter(folder / "a.h5").finish({}, {});
  EXPECT_TRUE(testing::contains(testing::refusal(folder / "a.h5"), "no recordings"));
}

TEST(ShdWriter, leaves_nothing_behind_unless_finished) {
  const TemporaryFolder folder;
  {
    ShdWriter writer(folder / "a.h5");
    writer.add(recordings(1, 1)[0].events, 0, 0);
    EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
  }
  EXPECT_EQ(folder.entries(), 0U);
  write(folder / "a.h5", recordings(1, 1));
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(ShdWriter, an_unfinished_file_leaves_the_one_before_alone) {
  const TemporaryFolder folder;
  write(folder / "a.h5", recordings(3, 1));
  const auto before = testing::read_bytes(folder / "a.h5");
  { ShdWriter writer(folder / "a.h5"); }
  EXPECT_TRUE(testing::read_bytes(folder / "a.h5") == before);
}

TEST(ShdWriter, refuses_what_the_layout_cannot_hold) {
  const TemporaryFolder folder;
  ShdWriter writer(folder / "a.h5");
  const auto add = [&](Event event, int label, int speaker) { writer.add(std::span(&event, 1), label, speaker); };
  EXPECT_THROW(add({0, 700}, 0, 0), InternalError);
  EXPECT_THROW(add({-1, 0}, 0, 0), InternalError);
  EXPECT_THROW(add({70'000'000'000, 0}, 0, 0), InternalError);
  EXPECT_THROW(add({0, 0}, -1, 0), InternalError);
  EXPECT_THROW(add({0, 0}, 65536, 0), InternalError);
  EXPECT_THROW(add({0, 0}, 0, -1), InternalError);
}

TEST(ShdWriter, a_place_that_cannot_be_written_is_the_users_error) {
  const TemporaryFolder folder;
  EXPECT_THROW(ShdWriter(folder / "missing/a.h5"), UserError);
  EXPECT_THROW(ShdWriter{folder.path()}, UserError);
  if (::geteuid() == 0) return;  // root may write anywhere
  ::chmod(folder.path().c_str(), 0500);
  EXPECT_THROW(ShdWriter(folder / "a.h5"), UserError);
}

/// Exit status of `work` in a child with a file system of `kilobytes` at `place`; 77 if it can't be made here.
template <class Work>
int on_small_disk(const std::filesystem::path& place, int kilobytes, Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string identity =
        "0 " + std::to_string(::geteuid()) + " 1";  // in a name space of its own, any user may mount
    if (::unshare(CLONE_NEWNS) != 0) {
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
      std::ofstream("/proc/self/uid_map") << identity;
    }
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    const std::string size = "size=" + std::to_string(kilobytes) + "k";
    if (::mount("spikeloom", place.c_str(), "tmpfs", 0, size.c_str()) != 0) ::_exit(77);
    if (!std::ofstream(place / "probe") || !std::filesystem::remove(place / "probe")) ::_exit(77);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ShdWriter, a_full_disk_is_a_lack_of_resources_and_leaves_nothing) {
  const TemporaryFolder folder;
  const int status = on_small_disk(folder.path(), 64, [&] {
    try {
      write(folder / "a.h5", recordings(3000, 1));
      return 1;
    } catch (const ResourceError& error) {
      if (!testing::contains(error.what(), "disk is full")) return 2;
    }
    return folder.entries() == 0 ? 0 : 3;
  });
  if (status == 77) GTEST_SKIP() << "this process may not mount a small file system";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace spikeloom
