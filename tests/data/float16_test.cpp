// Half precision against its definition and against HDF5's own conversion.
#include "data/float16.hpp"

#include <cmath>
#include <numeric>

#include "files.hpp"

namespace spikeloom {
namespace {

TEST(Float16, every_bit_pattern_has_the_value_that_hdf5_gives_it) {
  std::vector<std::uint16_t> bits(65536);
  std::iota(bits.begin(), bits.end(), std::uint16_t{0});
  Hdf5Writer writer;
  writer.write("halves", Hdf5Type::float16, std::as_bytes(std::span(bits)));
  const TemporaryFolder folder;
  testing::write_bytes(folder / "halves.h5", writer.image());
  const std::vector<double> expected = Hdf5Reader(folder / "halves.h5").array("halves").reals(0, bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const double value = float16_value(bits[i]);
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(value)) << i;
    } else {
      EXPECT_EQ(value, expected[i]) << i;
      EXPECT_EQ(float16_bits(value), bits[i]) << i;
    }
  }
}

TEST(Float16, rounds_to_the_nearest_and_ties_to_even) {
  for (std::uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const double low = float16_value(bits);
    const double high = float16_value(static_cast<std::uint16_t>(bits + 1));
    const double middle = low + (high - low) / 2;
    const auto even = static_cast<std::uint16_t>(bits + (bits & 1));
    EXPECT_EQ(float16_bits(middle), even) << bits;
    EXPECT_EQ(float16_bits(std::nextafter(middle, 0.0)), bits) << bits;
    EXPECT_EQ(float16_bits(std::nextafter(middle, 1e9)), bits + 1) << bits;
  }
}

TEST(Float16, becomes_infinite_only_beyond_half_a_step_above_the_largest) {
  EXPECT_EQ(float16_bits(kFloat16Max), 0x7BFF);
  EXPECT_EQ(float16_bits(65519.999), 0x7BFF);
  EXPECT_EQ(float16_bits(65520.0), 0x7C00);
  EXPECT_EQ(float16_bits(-1e300), 0xFC00);
}

}  // namespace
}  // namespace spikeloom
