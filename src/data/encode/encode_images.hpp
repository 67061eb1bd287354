// A folder of images as spikes.
#pragma once

#include <cstdint>
#include <filesystem>

#include "data/encode/image_spikes.hpp"

namespace spikeloom {

class ProgressListener;

struct EncodeImagesOptions {
  std::filesystem::path folder;  // MNIST's four files: train-images-idx3-ubyte, t10k-labels-idx1-ubyte, ... [.gz]
  std::filesystem::path out;     // folder for train.h5 and test.h5, created if missing
  ImageEncoding encoding;
  std::uint64_t seed = 1;  // of the rate encoder
  int threads = 0;         // 0: all cores
};

struct EncodedImages {
  std::size_t train = 0;  // images
  std::size_t test = 0;
  int width = 0;
  int height = 0;
};

/// Writes OUT/train.h5 and OUT/test.h5 in SHD's layout, a sample for each image in the files' order: channel
/// y * width + x, steps of kImageStepUs; the keys are the labels as numbers, for IDX has no names. The names with
/// `.idx3-ubyte` are found, too, and an unpacked file goes before a gzipped one.
///
/// What an image becomes depends on it, on its number in its file and on the options (but `threads`) alone: the same
/// give the same bytes. Each file appears whole or not at all, test.h5 last. Throws UserError naming file, place, value
/// and what is allowed (a missing or damaged file, as many labels as images, one size in both sets), and ResourceError.
EncodedImages encode_images(const EncodeImagesOptions& options, ProgressListener& listener);

}  // namespace spikeloom
