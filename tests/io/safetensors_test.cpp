#include "io/safetensors.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "tiny_run.hpp"

namespace spikeloom {
namespace {

using Shape = std::vector<std::uint64_t>;

/// A file of this header and so many bytes of zeros behind it.
std::filesystem::path file_of(const TemporaryFolder& folder, const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  const std::filesystem::path path = folder / "file.safetensors";
  write_text(path, text + header + std::string(data_bytes, '\0'));
  return path;
}

std::string refusal(const std::filesystem::path& path) {
  return message_of<UserError>([&] { SafetensorsReader reader(path); });
}

TEST(Safetensors, WhatIsWrittenIsRead) {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add("a.weight", {2, 3}, {1, -2, 3, 1e-38F, 5, 0.1F});
  writer.add("b", {1}, {7});
  writer.add("empty", {0, 4}, {});
  writer.set("key", "a \"text\"\nof two lines");
  writer.write(folder / "x.safetensors");
  const SafetensorsReader reader(folder / "x.safetensors");
  EXPECT_EQ(reader.read("a.weight", Shape{2, 3}), (std::vector<float>{1, -2, 3, 1e-38F, 5, 0.1F}));
  EXPECT_EQ(reader.read("b", Shape{1}), std::vector<float>{7});
  EXPECT_TRUE(reader.read("empty", Shape{0, 4}).empty());
  EXPECT_EQ(reader.metadata().at("key"), "a \"text\"\nof two lines");
  EXPECT_EQ(reader.tensors().size(), 3U);
  EXPECT_EQ(reader.tensors()[0].begin % 8, 0U) << "tensors must be aligned";
}

TEST(Safetensors, OtherTypesOfNumbersAreWidenedOrNarrowed) {
  const TemporaryFolder folder;
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},"b":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]},)"
      R"("d":{"dtype":"F64","shape":[1],"data_offsets":[4,12]},"i":{"dtype":"I32","shape":[1],"data_offsets":[12,16]}})";
  const std::filesystem::path path = file_of(folder, header, 16);
  std::string text = read_text(path);
  const std::uint16_t half = 0x3E00;   // 1.5
  const std::uint16_t brain = 0xC040;  // -3
  const double wide = 0.25;
  char* data = text.data() + text.size() - 16;
  std::memcpy(data, &half, 2);
  std::memcpy(data + 2, &brain, 2);
  std::memcpy(data + 4, &wide, 8);
  write_text(path, text);
  const SafetensorsReader reader(path);
  EXPECT_EQ(reader.read("h", Shape{1}), std::vector<float>{1.5F});
  EXPECT_EQ(reader.read("b", Shape{1}), std::vector<float>{-3.0F});
  EXPECT_EQ(reader.read("d", Shape{1}), std::vector<float>{0.25F});
  EXPECT_TRUE(contains(message_of<UserError>([&] { reader.read("i", Shape{1}); }), "I32"));
}

TEST(Safetensors, DamagedFilesAreRefusedWithTheirNameAndPlace) {
  const TemporaryFolder folder;
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_NO_THROW(SafetensorsReader reader(file_of(folder, good, 8)));
  struct Case {
    std::string header;
    std::size_t bytes;
    std::string said;
  };
  const Case cases[] = {
      {good, 7, "outside"},
      {good, 9, "no tensor"},
      {"", 0, "JSON"},
      {"[]", 0, "JSON"},
      {"{\"a\"", 0, "JSON"},
      {std::string(100000, '['), 0, "JSON"},
      {std::string(R"({"a":)") + std::string(100000, '[') + std::string(100000, ']') + "}", 0, "JSON"},
      {R"({"a":3})", 0, "\"a\""},
      {R"({"a":{"dtype":"F32","shape":[2]}})", 8, "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "shape"},
      {R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", 8, "shape"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8, "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", 8, "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "does not take 8 bytes"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "does not take 0 bytes"},
      {R"({"a":{"dtype":"F32","shape":[0,18446744073709551615,18446744073709551615],"data_offsets":[0,4]}})", 4,
       "does not take"},
      {R"({"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}})", 8, "F33"},
      {R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}})", 8, "shape"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
       12, "no tensor"},
      {R"({"__metadata__":{"x":1}})", 0, "not a text"},
      {R"({"__metadata__":[]})", 0, "__metadata__"},
  };
  for (const Case& damaged : cases) {
    const std::filesystem::path path = file_of(folder, damaged.header, damaged.bytes);
    const std::string said = refusal(path);
    EXPECT_TRUE(contains(said, path.string())) << said;
    EXPECT_TRUE(contains(said, damaged.said)) << said << "\n" << damaged.header.substr(0, 100);
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

TEST(Safetensors, EveryTruncationAndEveryFlippedByteIsAnswered) {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add("a", {2}, {1, 2});
  writer.add("b", {1, 3}, {1, 2, 3});
  writer.set("key", "value");
  writer.write(folder / "good");
  const std::string good = read_text(folder / "good");
  for (std::size_t size = 0; size < good.size(); ++size) {
    write_text(folder / "bad", good.substr(0, size));
    EXPECT_THROW(SafetensorsReader reader(folder / "bad"), UserError) << size;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int bit : {0, 1, 7}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      write_text(folder / "bad", bad);
      try {
        const SafetensorsReader reader(folder / "bad");
        for (const TensorInfo& tensor : reader.tensors()) reader.read(tensor.name, tensor.shape);
      } catch (const UserError&) {
      }
    }
  }
}

TEST(Safetensors, NanAndInfinityAreRefusedWithTheirIndex) {
  const TemporaryFolder folder;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    SafetensorsWriter writer;
    writer.add("a", {3}, {1, 2, bad});
    writer.write(folder / "x");
    const SafetensorsReader reader(folder / "x");
    EXPECT_TRUE(contains(message_of<UserError>([&] { reader.read("a", Shape{3}); }), "\"a\", index 2"));
  }
}

TEST(Safetensors, WrongShapeAndMissingTensorSayBothShapes) {
  const TemporaryFolder folder;
  SafetensorsWriter writer;
  writer.add("a", {3, 2}, std::vector<float>(6));
  writer.write(folder / "x");
  const SafetensorsReader reader(folder / "x");
  EXPECT_TRUE(contains(message_of<UserError>([&] { reader.read("a", Shape{2, 3}); }), "(3, 2); allowed: (2, 3)"));
  EXPECT_TRUE(contains(message_of<UserError>([&] { reader.read("b", Shape{2}); }), "\"b\" of shape (2) is missing"));
}

TEST(Safetensors, MissingFilesAndFoldersAreRefused) {
  const TemporaryFolder folder;
  EXPECT_TRUE(contains(refusal(folder / "none"), "no such file"));
  EXPECT_TRUE(contains(refusal(folder / "."), "not a file"));
}

}  // namespace
}  // namespace spikeloom
