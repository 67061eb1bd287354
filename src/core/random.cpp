#include "core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/random_blocks.hpp"

namespace spikeloom {
namespace {

std::uint64_t fnv1a(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t number) {
  const std::uint64_t key = fnv1a(purpose, 0xcbf29ce484222325ULL ^ (seed * 0x9E3779B97F4A7C15ULL + (seed >> 32)));
  key_ = {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
  number_ = {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)};
}

std::array<std::uint32_t, 4> RandomStream::block_at(std::uint64_t index) const {
  return philox4x32(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), number_[0], number_[1]}, key_);
}

std::uint32_t RandomStream::bits_at(std::uint64_t index) const { return block_at(index)[0]; }

namespace {
double unit(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}
}  // namespace

double RandomStream::uniform_at(std::uint64_t index) const {
  const auto block = block_at(index);
  return unit(block[0], block[1]);
}

void RandomStream::uniforms_at(std::uint64_t first, std::uint64_t stride, std::span<double> values) const {
  const auto joined = [](const std::array<std::uint32_t, 2>& words) {
    return std::uint64_t{words[1]} << 32 | words[0];
  };
  std::uint64_t high[kRandomBlocks], low[kRandomBlocks];
  for (std::size_t done = 0; done < values.size(); done += kRandomBlocks) {
    random_first_words(first + done * stride, stride, joined(number_), joined(key_), high, low);
    const std::size_t count = std::min(kRandomBlocks, values.size() - done);
    for (std::size_t i = 0; i < count; ++i)
      values[done + i] = unit(static_cast<std::uint32_t>(high[i]), static_cast<std::uint32_t>(low[i]));
  }
}

double RandomStream::normal_at(std::uint64_t index) const {
  const auto block = block_at(index);
  const double radius = std::sqrt(-2.0 * std::log1p(-unit(block[0], block[1])));
  return radius * std::cos(2.0 * std::numbers::pi * unit(block[2], block[3]));
}

std::uint64_t RandomStream::below_at(std::uint64_t index, std::uint64_t bound) const {
  const auto block = block_at(index);
  const std::uint64_t bits = std::uint64_t{block[0]} << 32 | block[1];
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

std::vector<std::uint32_t> RandomStream::permutation(std::size_t size) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = size; i > 1; --i) std::swap(order[i - 1], order[below(i)]);
  return order;
}

}  // namespace spikeloom
