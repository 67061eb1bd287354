// Reads images and labels in the IDX format of MNIST and its kin (Fashion-MNIST, EMNIST, KMNIST), plain or gzipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace spikeloom {

/// Grey images of one size, row after row; 0 is black.
struct IdxImages {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // size() * height * width

  std::size_t pixels_per_image() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(height); }
  std::size_t size() const { return pixels_per_image() == 0 ? 0 : pixels.size() / pixels_per_image(); }
  std::span<const std::uint8_t> image(std::size_t index) const {
    return std::span(pixels).subspan(index * pixels_per_image(), pixels_per_image());
  }
};

/// Images of more pixels than this are refused: a pixel is a channel, and SHD's layout numbers channels in 16 bits.
inline constexpr std::size_t kMostIdxPixels = 65536;

/// An IDX file of unsigned bytes with three dimensions (magic number 0x00000803): images, rows, columns. Whether it is
/// gzipped is seen from its content. Throws UserError naming file, byte, value and what is allowed: another magic
/// number, no images, sizes beyond the limits, a file that is shorter or longer than its sizes say, damaged or cut-off
/// gzip. Memory is taken as bytes arrive, so a header alone cannot ask for much. Source: Y. LeCun, the MNIST database.
IdxImages read_idx_images(const std::filesystem::path& path);

/// The same with one dimension (magic number 0x00000801): a label of 0 to 255 each.
std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& path);

}  // namespace spikeloom
