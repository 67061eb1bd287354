#include "data/encode/encode_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "core/progress.hpp"
#include "core/random.hpp"
#include "core/worker_team.hpp"
#include "data/idx_file.hpp"
#include "data/shd_file.hpp"

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRound = 1024;  // images encoded before they are handed to the file: some 16 MB of events

struct ImageSet {
  IdxImages images;
  std::vector<std::uint8_t> labels;
};

/// "train-images-idx3-ubyte" of a folder, as any of the names under which it is found in the world.
fs::path find_idx(const fs::path& folder, const std::string& stem, const std::string& kind) {
  std::error_code error;
  for (const char* separator : {"-", "."})
    for (const char* packed : {"", ".gz"})
      if (const fs::path path = folder / (stem + separator + kind + packed); fs::exists(path, error)) return path;
  throw UserError(
      fmt::format("{}: has no {}-{}, packed (.gz) or not; a folder of IDX images has train-images, "
                  "train-labels, t10k-images and t10k-labels",
                  folder.string(), stem, kind));
}

ImageSet read_set(const fs::path& folder, const std::string& prefix) {
  const fs::path images = find_idx(folder, prefix + "-images", "idx3-ubyte");
  const fs::path labels = find_idx(folder, prefix + "-labels", "idx1-ubyte");
  ImageSet set{read_idx_images(images), read_idx_labels(labels)};
  if (set.labels.size() != set.images.size())
    throw UserError(fmt::format("{}: byte 4: {} labels; allowed: {}, one for each image of {}", labels.string(),
                                set.labels.size(), set.images.size(), images.string()));
  return set;
}

int largest_label(const ImageSet& set) { return *std::max_element(set.labels.begin(), set.labels.end()); }

class SetEncoder {
 public:
  SetEncoder(const EncodeImagesOptions& options, ProgressListener& listener, std::uint64_t total)
      : options_(options),
        listener_(listener),
        spikes_(options.encoding),
        team_(options.threads > 0 ? options.threads : std::max(1, available_cores())),
        total_(total) {}

  void encode(const ImageSet& set, const std::string& name, ShdWriter& writer) {
    std::vector<std::vector<Event>> results(kRound);
    for (std::size_t first = 0; first < set.images.size(); first += kRound) {
      const std::size_t round = std::min(kRound, set.images.size() - first);
      team_.for_each(round, [&](std::size_t i, int) {
        const RandomStream random(options_.seed, "images/" + name, first + i);
        results[i] = spikes_.encode(set.images.image(first + i), random);
      });
      for (std::size_t i = 0; i < round; ++i) {
        writer.add(results[i], set.labels[first + i], 0);
        empty_ += results[i].empty() ? 1 : 0;
      }
      done_ += round;
      listener_.progress("encoding", done_, total_, name);
    }
  }

  std::uint64_t empty() const { return empty_; }

 private:
  const EncodeImagesOptions& options_;
  ProgressListener& listener_;
  ImageSpikes spikes_;
  WorkerTeam team_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::uint64_t empty_ = 0;
};

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error == std::errc::no_space_on_device)
    throw ResourceError(fmt::format("{}: can't be created: the disk is full", folder.string()));
  if (error) throw UserError(fmt::format("{}: can't be created: {}", folder.string(), error.message()));
}

}  // namespace

EncodedImages encode_images(const EncodeImagesOptions& options, ProgressListener& listener) {
  check(options.encoding);
  if (options.threads < 0)
    throw UserError(fmt::format("threads = {}; allowed: 0 (all cores) or more", options.threads));
  std::error_code error;
  if (!fs::is_directory(options.folder, error))
    throw UserError(fmt::format("{}: not a folder", options.folder.string()));
  const ImageSet train = read_set(options.folder, "train");
  const ImageSet test = read_set(options.folder, "t10k");
  if (test.images.width != train.images.width || test.images.height != train.images.height)
    throw UserError(fmt::format("{}: test images of {} x {} pixels; allowed: {} x {}, as the training images are",
                                options.folder.string(), test.images.width, test.images.height, train.images.width,
                                train.images.height));
  make_folder(options.out);
  const ShdWriterOptions layout{static_cast<int>(train.images.pixels_per_image())};
  // Both files are opened before the work, so that an unwritable place shows at once.
  ShdWriter train_file(options.out / "train.h5", layout);
  ShdWriter test_file(options.out / "test.h5", layout);
  std::vector<std::string> keys;
  for (int label = 0; label <= std::max(largest_label(train), largest_label(test)); ++label)
    keys.push_back(std::to_string(label));

  SetEncoder encoder(options, listener, train.images.size() + test.images.size());
  encoder.encode(train, "train", train_file);
  encoder.encode(test, "test", test_file);
  train_file.finish(keys, {});
  test_file.finish(keys, {});
  if (encoder.empty() > 0)
    listener.warning(fmt::format("{} of {} images have no spike (too dark): empty samples", encoder.empty(),
                                 train.images.size() + test.images.size()));
  return {train.images.size(), test.images.size(), train.images.width, train.images.height};
}

}  // namespace spikeloom
