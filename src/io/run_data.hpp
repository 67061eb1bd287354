// The data sets that a configuration names, read and split.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <spikeloom/configuration.hpp>
#include <spikeloom/dataset.hpp>

#include "core/progress.hpp"

namespace spikeloom {

/// Some samples of a data set that may be shared with other parts.
struct DataSelection {
  std::shared_ptr<const SpikeDataset> data;  // null: there is none
  std::vector<std::uint32_t> samples;

  bool empty() const { return samples.empty(); }
};

struct RunData {
  DataSelection train;
  DataSelection validation;
  DataSelection test;
};

/// Reads data.train, data.test (or the fold of data.train) and the validation set, tells `listener` what binning
/// dropped, and fills what the configuration left to the data: data.channels, data.classes and network.channels. Warns
/// if train and test are the same. Throws UserError.
RunData read_run_data(Configuration& configuration, ProgressListener& listener);

/// What `eval` looks at: `path`, or with an empty path the configuration's test set. network.channels must be known.
DataSelection read_test_data(const Configuration& configuration, const std::filesystem::path& path,
                             ProgressListener& listener);

}  // namespace spikeloom
