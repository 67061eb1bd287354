// Reading memory as fast as the core can: the yardstick of the other kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spikeloom::kernels {

/// Reads `count` floats in order; `from` is aligned to 64 bytes and `count` a multiple of 256. Returns their sum, of no
/// use but to keep the reads.
float read_in_order(const float* from, std::size_t count);

/// Reads the rows (64 floats) that `ids` name. The same conditions.
float read_rows(const float* from, const std::uint32_t* ids, std::size_t count);

}  // namespace spikeloom::kernels
