// IDX files, right and wrong, plain and gzipped.
#include "data/idx_file.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include "core/random.hpp"
#include "files.hpp"

namespace spikeloom {
namespace {

using testing::contains;

constexpr std::uint32_t kImageMagic = 0x00000803;
constexpr std::uint32_t kLabelMagic = 0x00000801;

std::vector<std::byte> idx(std::uint32_t magic, const std::vector<std::uint32_t>& sizes, std::size_t values) {
  std::vector<std::byte> bytes;
  const auto number = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(value >> shift & 0xFFU));
  };
  number(magic);
  for (const std::uint32_t size : sizes) number(size);
  for (std::size_t i = 0; i < values; ++i) bytes.push_back(static_cast<std::byte>(i * 37 % 256));
  return bytes;
}

std::vector<std::byte> gzipped(const std::filesystem::path& scratch, const std::vector<std::byte>& bytes) {
  const gzFile file = gzopen(scratch.c_str(), "wb");
  EXPECT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
  EXPECT_EQ(gzclose(file), Z_OK);
  return testing::read_bytes(scratch);
}

class Idx : public ::testing::Test {
 protected:
  /// What reading these bytes says: they must be refused, in one line that names the file.
  template <class Read>
  std::string refusal(const std::vector<std::byte>& bytes, Read&& read) {
    testing::write_bytes(path_, bytes);
    return refusal_of_path(read);
  }
  template <class Read>
  std::string refusal_of_path(Read&& read) {
    try {
      read(path_);
    } catch (const UserError& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(path_.string() + ": ")) << text;
      EXPECT_FALSE(contains(text, "\n"));
      return text;
    }
    ADD_FAILURE() << "was read";
    return "";
  }
  std::string images_refusal(const std::vector<std::byte>& bytes) { return refusal(bytes, read_idx_images); }
  std::string labels_refusal(const std::vector<std::byte>& bytes) { return refusal(bytes, read_idx_labels); }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "file-ubyte";
};

TEST_F(Idx, images_are_the_files_bytes_row_after_row_packed_or_not) {
  const std::vector<std::byte> bytes = idx(kImageMagic, {5, 2, 3}, 30);
  for (const bool packed : {false, true}) {
    testing::write_bytes(path_, packed ? gzipped(folder_ / "scratch", bytes) : bytes);
    const IdxImages images = read_idx_images(path_);
    EXPECT_EQ(images.size(), 5U);
    EXPECT_EQ(images.height, 2);
    EXPECT_EQ(images.width, 3);
    for (std::size_t i = 0; i < 5; ++i)
      for (std::size_t pixel = 0; pixel < 6; ++pixel)
        EXPECT_EQ(images.image(i)[pixel], std::to_integer<std::uint8_t>(bytes[16 + i * 6 + pixel]));
  }
}

TEST_F(Idx, labels_are_the_files_bytes_packed_or_not) {
  const std::vector<std::byte> bytes = idx(kLabelMagic, {300}, 300);
  for (const bool packed : {false, true}) {
    testing::write_bytes(path_, packed ? gzipped(folder_ / "scratch", bytes) : bytes);
    const std::vector<std::uint8_t> labels = read_idx_labels(path_);
    ASSERT_EQ(labels.size(), 300U);
    for (std::size_t i = 0; i < labels.size(); ++i) EXPECT_EQ(labels[i], std::to_integer<std::uint8_t>(bytes[8 + i]));
  }
}

TEST_F(Idx, another_magic_number_is_refused_and_both_are_named) {
  std::string text = images_refusal(idx(kLabelMagic, {5, 2, 3}, 30));
  EXPECT_TRUE(contains(text, "byte 0: magic number 0x00000801; allowed: 0x00000803")) << text;
  text = labels_refusal(idx(kImageMagic, {5}, 5));
  EXPECT_TRUE(contains(text, "byte 0: magic number 0x00000803; allowed: 0x00000801")) << text;
  text = images_refusal(idx(0x00000D03, {5, 2, 3}, 120));  // IDX of floats
  EXPECT_TRUE(contains(text, "0x00000d03")) << text;
}

TEST_F(Idx, a_file_shorter_or_longer_than_its_sizes_say_is_refused_with_both_lengths) {
  for (const bool packed : {false, true}) {
    const auto bytes = [&](std::size_t values) {
      std::vector<std::byte> plain = idx(kImageMagic, {5, 2, 3}, values);
      return packed ? gzipped(folder_ / "scratch", plain) : plain;
    };
    std::string text = images_refusal(bytes(29));
    EXPECT_TRUE(contains(text, "ends at byte 45; 5 images of 3 x 2 pixels need 46 bytes")) << text;
    text = images_refusal(bytes(31));
    EXPECT_TRUE(contains(text, "goes on after byte 46")) << text;
  }
  std::string text = labels_refusal(idx(kLabelMagic, {7}, 6));
  EXPECT_TRUE(contains(text, "ends at byte 14; 7 labels need 15 bytes")) << text;
  text = labels_refusal(idx(kLabelMagic, {7}, 8));
  EXPECT_TRUE(contains(text, "goes on after byte 15")) << text;
}

TEST_F(Idx, every_cut_of_the_header_is_refused) {
  const std::vector<std::byte> whole = idx(kImageMagic, {5, 2, 3}, 30);
  for (std::size_t length = 0; length < 16; ++length) {
    const std::string text = images_refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
    EXPECT_TRUE(contains(text, "ends at byte " + std::to_string(length) + ";")) << text;
  }
}

TEST_F(Idx, every_cut_of_a_gzipped_file_is_refused) {
  const std::vector<std::byte> whole = gzipped(folder_ / "scratch", idx(kImageMagic, {5, 2, 3}, 30));
  for (std::size_t length = 0; length < whole.size(); ++length)
    images_refusal({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
  const std::string text = images_refusal({whole.begin(), whole.end() - 4});
  EXPECT_TRUE(contains(text, "damaged gzip data") && contains(text, "cut off")) << text;
}

TEST_F(Idx, a_flipped_bit_of_a_gzipped_file_is_refused_or_harmless) {
  const std::vector<std::byte> plain = idx(kLabelMagic, {2000}, 2000);
  const std::vector<std::byte> whole = gzipped(folder_ / "scratch", plain);
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::vector<std::byte> damaged = whole;
    damaged[at] ^= std::byte{4};
    testing::write_bytes(path_, damaged);
    try {
      const std::vector<std::uint8_t> labels = read_idx_labels(path_);
      for (std::size_t i = 0; i < labels.size(); ++i)
        ASSERT_EQ(labels[i], std::to_integer<std::uint8_t>(plain[8 + i])) << "byte " << at;
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()) / 2);
}

TEST_F(Idx, sizes_outside_the_limits_are_refused_before_memory_is_taken) {
  std::string text = images_refusal(idx(kImageMagic, {0, 28, 28}, 0));
  EXPECT_TRUE(contains(text, "byte 4: 0 images; allowed: at least 1")) << text;
  text = labels_refusal(idx(kLabelMagic, {0}, 0));
  EXPECT_TRUE(contains(text, "byte 4: 0 labels; allowed: 1 to")) << text;
  for (const std::vector<std::uint32_t>& sizes :
       {std::vector<std::uint32_t>{1, 0, 28}, {1, 28, 0}, {1, 256, 257}, {1, 0xFFFFFFFF, 0xFFFFFFFF}}) {
    text = images_refusal(idx(kImageMagic, sizes, 8));
    EXPECT_TRUE(contains(text, "byte 8: images of") && contains(text, "allowed: 1 to 65536 pixels")) << text;
  }
  text = images_refusal(idx(kImageMagic, {0xFFFFFFFF, 256, 256}, 8));
  EXPECT_TRUE(contains(text, "byte 4: 4294967295 images") && contains(text, "at most 32768 images")) << text;
  text = labels_refusal(idx(kLabelMagic, {0xFFFFFFFF}, 8));
  EXPECT_TRUE(contains(text, "byte 4: 4294967295 labels")) << text;
  // Within the limits, and a gigabyte more than the file has: memory is taken as bytes arrive.
  text = images_refusal(idx(kImageMagic, {1'000'000, 40, 40}, 8));
  EXPECT_TRUE(contains(text, "ends at byte 24")) << text;
}

TEST_F(Idx, random_bytes_are_refused) {
  RandomStream random(1, "idx");
  for (int round = 0; round < 300; ++round) {
    std::vector<std::byte> bytes(random.below(200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
    if (round % 3 == 0 && bytes.size() > 4) {  // past the magic number
      const std::vector<std::byte> magic = idx(kImageMagic, {}, 0);
      std::copy(magic.begin(), magic.end(), bytes.begin());
    }
    images_refusal(bytes);
  }
}

TEST_F(Idx, what_is_no_file_is_named) {
  EXPECT_TRUE(contains(refusal_of_path(read_idx_images), "no such file"));
  std::filesystem::create_directory(path_);
  EXPECT_TRUE(contains(refusal_of_path(read_idx_images), "not a file"));
}

}  // namespace
}  // namespace spikeloom
