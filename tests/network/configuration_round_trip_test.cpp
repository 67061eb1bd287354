// Writing and loading again gives the same configuration, for configurations with values drawn from everything that is
// allowed.
#include <gtest/gtest.h>

#include <cmath>

#include "configuration_file.hpp"
#include "core/random.hpp"
#include "network/settings.hpp"

namespace spikeloom {
namespace {

using testing::kMinimal;
using testing::load_text;

/// Every setting of both, compared through the table.
void expect_same(const Configuration& a, const Configuration& b) {
  ASSERT_EQ(a.network.layers.size(), b.network.layers.size());
  for (const Setting& setting : settings()) {
    const std::size_t layers = setting.section == "layers" ? a.network.layers.size() : 1;
    for (std::size_t i = 0; i < layers; ++i) {
      const bool layered = setting.section == "layers";
      EXPECT_EQ(setting.get(a, layered ? &a.network.layers[i] : nullptr),
                setting.get(b, layered ? &b.network.layers[i] : nullptr))
          << setting.key();
    }
  }
  for (std::size_t i = 0; i < a.network.layers.size(); ++i)
    EXPECT_EQ(a.network.layers[i].membrane.decay, b.network.layers[i].membrane.decay);
  EXPECT_EQ(a.network.steps, b.network.steps);
  EXPECT_EQ(a.network.step_ms, b.network.step_ms);
  EXPECT_EQ(a.network.channels, b.network.channels);
}

/// A value that `setting` takes, found by trying: numbers of many sizes and signs, ranges, booleans, and the words of
/// its own description.
SettingValue draw_value(const Setting& setting, RandomStream& random) {
  Configuration configuration;
  LayerSpec layer;
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    const double number = std::exp(random.uniform(-15, 15)) * (random.below(8) == 0 ? -1 : 1);
    SettingValue value;
    switch (random.below(6)) {
      case 0:
        value = random.below(2) == 0;
        break;
      case 1:
        value = static_cast<std::int64_t>(number);
        break;
      case 2:
        value = number;
        break;
      case 3:
        value = std::vector<double>{number, number * random.uniform(1, 3)};
        break;
      case 4:
        value = std::round(number * 1000) / 1000;
        break;
      default: {
        const std::string& words = setting.allowed;
        std::vector<std::string> parts{"1/5", "a \"path\"\\with\tall\x01", "f\xc3\xbcnf.h5"};
        for (std::size_t at = 0; at < words.size();) {
          const std::size_t end = std::min(words.find_first_of(", ", at), words.size());
          if (end > at) parts.push_back(words.substr(at, end - at));
          at = end + 1;
        }
        const std::string& part = parts[random.below(parts.size())];
        if (random.below(4) == 0) {
          value = std::vector<std::string>{part};
        } else {
          value = part;
        }
      }
    }
    if (setting.set({&configuration, &layer, "/base"}, value)) return value;
  }
  ADD_FAILURE() << "no value found for " << setting.key();
  return false;
}

bool needs_a_next_layer(const Setting& setting) {
  return setting.name == "spike_budget" || setting.name == "dropout" || setting.name == "delay_steps";
}

TEST(ConfigurationRoundTrip, KeepsEveryValue) {
  RandomStream random(7, "round trip");
  int kept = 0;
  for (int trial = 0; trial < 800; ++trial) {
    Configuration drawn = load_text(kMinimal);
    for (const Setting& setting : settings()) {
      if (setting.name == "neuron" || setting.name == "name" || setting.name == "size" || setting.name == "classes" ||
          setting.name == "inputs")
        continue;
      const bool particular = setting.name == "learn" || setting.name == "early_stopping" ||
                              setting.name == "activity_target" || setting.name == "rescue_active" ||
                              setting.name == "spike_budget" || setting.name == "delay_steps";
      if ((setting.section == "loss" || particular) && random.below(4) != 0)
        continue;  // some combinations are conflicts; most trials should not be
      if (setting.name == "rate_lower" || (setting.name == "fold" && random.below(2) == 0)) continue;
      if (setting.section == "layers") {
        for (LayerSpec& layer : drawn.network.layers) {
          const bool last = &layer == &drawn.network.layers.back();
          if (!last || !needs_a_next_layer(setting))
            setting.set({&drawn, &layer, "/base"}, draw_value(setting, random));
        }
      } else {
        setting.set({&drawn, nullptr, "/base"}, draw_value(setting, random));
      }
    }
    Configuration first;
    try {
      first = load_text(to_toml(drawn));
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).find("not allowed"), std::string::npos) << error.what();
      continue;  // a conflict between settings
    }
    ++kept;
    const std::string text = to_toml(first);
    const Configuration second = load_text(text);
    expect_same(first, second);
    EXPECT_EQ(to_toml(second), text);
    drawn.network.step_ms = drawn.data.step_ms;
    drawn.network.steps = drawn.data.steps;
    drawn.network.channels = (drawn.data.channels + drawn.data.channel_bin - 1) / drawn.data.channel_bin;
    for (std::size_t i = 0; i < 2; ++i)
      drawn.network.layers[i].membrane.decay = first.network.layers[i].membrane.decay_given
                                                   ? drawn.network.layers[i].membrane.decay
                                                   : first.network.layers[i].membrane.decay;
    expect_same(drawn, first);
    if (HasFailure()) return;
  }
  EXPECT_GT(kept, 50);
}

TEST(ConfigurationRoundTrip, PathsAreWrittenAbsolute) {
  const testing::ConfigurationFile file(kMinimal);
  EXPECT_NE(to_toml(load_configuration(file.path())).find("train = \"" + (file.folder() / "train.h5").string() + "\""),
            std::string::npos);
}

TEST(ConfigurationRoundTrip, SaysEverySetting) {
  const std::string text = "\n" + to_toml(load_text(kMinimal));
  for (const Setting& setting : settings()) {
    if (setting.name.starts_with("decay")) continue;  // tau_mem_ms and its like stand for them
    EXPECT_NE(text.find("\n" + setting.name + " = "), std::string::npos) << setting.name;
  }
}

}  // namespace
}  // namespace spikeloom
