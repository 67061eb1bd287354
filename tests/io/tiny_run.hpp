// A run small enough for tests: a few recordings whose class shows in their channels and times.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <spikeloom/error.hpp>
#include <spikeloom/run.hpp>

#include "core/progress.hpp"
#include "core/random.hpp"
#include "data/shd_file.hpp"
#include "io/safetensors.hpp"
#include "support/temporary_folder.hpp"

namespace spikeloom {

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// `samples` recordings of three classes (label = sample mod 3; the third occurs only if `all_classes`), 12 channels,
/// 20 ms; every seventh is empty.
inline void write_recordings(const std::filesystem::path& path, int samples, std::uint64_t seed,
                             bool all_classes = true) {
  ShdWriter file(path, {.channels = 12});
  RandomStream random(seed, "recordings");
  for (int sample = 0; sample < samples; ++sample) {
    const int label = sample % (all_classes ? 3 : 2);
    std::vector<Event> events;
    for (int e = 0; sample % 7 != 6 && e < 40; ++e) {
      const auto channel = static_cast<std::uint32_t>(random.below(12));
      const std::int64_t time = static_cast<std::int64_t>(random.below(20)) * 1000;
      if (random.uniform() < (channel / 4 == static_cast<std::uint32_t>(label) ? 0.9 : 0.3))
        events.push_back({time, channel});
    }
    file.add(events, label, sample % 4);
  }
  file.finish({}, {});
}

/// A configuration of two hidden layers on write_recordings' files, with `changes` applied.
class TinyRun {
 public:
  TinyRun() {
    write_recordings(folder_ / "train.h5", 50, 1);
    write_recordings(folder_ / "test.h5", 20, 2);
    write_text(folder_ / "run.toml", R"(seed = 3
[data]
train = "train.h5"
test = "test.h5"
step_ms = 1.0
steps = 20
channels = 12
validation = 0.2
[[layers]]
name = "one"
neuron = "lif"
size = 70
tau_mem_ms = [5.0, 20.0]
[[layers]]
name = "two"
neuron = "lif"
size = 20
tau_mem_ms = 10.0
[[layers]]
name = "out"
neuron = "li"
size = 3
tau_mem_ms = 10.0
[optimizer]
learning_rate = 1e-2
gradient_clip = 1.0
[training]
epochs = 3
batch_size = 8
[engine]
threads = 2
)");
  }

  Configuration configuration(const std::vector<std::string>& changes = {}) const {
    return load_configuration(folder_ / "run.toml", changes);
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  TrainSummary train(const std::string& out, const std::vector<std::string>& changes = {}) const {
    SilentListener listener;
    TrainOptions options;
    options.out = folder_ / out;
    return train_run(configuration(changes), options, listener);
  }

 private:
  TemporaryFolder folder_;
};

/// Calls a function whenever training reports that it has come further.
class HookedListener final : public ProgressListener {
 public:
  explicit HookedListener(std::function<void(std::string_view, std::uint64_t)> hook) : hook_(std::move(hook)) {}
  void progress(std::string_view work, std::uint64_t done, std::uint64_t, std::string_view) override {
    hook_(work, done);
  }
  void warning(std::string_view text) override { warnings.emplace_back(text); }
  void note(std::string_view text) override { notes.emplace_back(text); }
  std::vector<std::string> warnings;
  std::vector<std::string> notes;

 private:
  std::function<void(std::string_view, std::uint64_t)> hook_;
};

/// Everything in a checkpoint that must not depend on how a run came to it: all tensors, and the metadata but for
/// times.
inline void expect_same_checkpoint(const std::filesystem::path& a, const std::filesystem::path& b) {
  const SafetensorsReader one(a);
  const SafetensorsReader other(b);
  ASSERT_EQ(one.tensors().size(), other.tensors().size());
  for (const TensorInfo& tensor : one.tensors()) {
    ASSERT_NE(other.find(tensor.name), nullptr) << tensor.name;
    EXPECT_EQ(one.read(tensor.name, tensor.shape), other.read(tensor.name, tensor.shape)) << tensor.name;
  }
  for (const auto& [key, value] : one.metadata()) {
    if (key.find("seconds") != std::string::npos) continue;
    EXPECT_EQ(value, other.metadata().at(key)) << key;
  }
}

template <class Error, class Work>
std::string message_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace spikeloom
