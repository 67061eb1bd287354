// metrics.jsonl: one JSON object a line, one line an epoch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/evaluate.hpp"
#include "train/trainer.hpp"

namespace spikeloom {

class MetricsLog {
 public:
  /// Takes over the lines of epochs 1 to `epochs` of what is there (a line is lost whose epoch the checkpoint does not
  /// know), and writes the file.
  MetricsLog(std::filesystem::path path, int epochs);

  /// Appends the epoch's line: the file is written anew beside its place and renamed, so it never holds half a line.
  void append(const NetworkSpec& network, const EpochSummary& summary, const std::optional<Evaluation>& validation);

 private:
  void write() const;

  std::filesystem::path path_;
  std::vector<std::string> lines_;
};

}  // namespace spikeloom
