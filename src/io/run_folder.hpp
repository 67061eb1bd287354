// Where the files of a run are, and how small ones are written.
#pragma once

#include <filesystem>
#include <string>

namespace spikeloom {

/// A run, or (`seeds`) a folder of runs with several seeds.
struct RunFolder {
  std::filesystem::path path;
  std::filesystem::path configuration() const { return path / "config.toml"; }
  std::filesystem::path metrics() const { return path / "metrics.jsonl"; }
  std::filesystem::path last() const { return path / "last.safetensors"; }
  std::filesystem::path best() const { return path / "best.safetensors"; }
  std::filesystem::path seeds() const { return path / "seeds.json"; }  // of train_seeds
  std::filesystem::path environment() const { return path / "environment.json"; }
};

/// Writes a whole file or none: beside, synced, renamed.
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace spikeloom
