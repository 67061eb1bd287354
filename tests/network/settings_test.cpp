#include "network/settings.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spikeloom {
namespace {

TEST(Settings, KeysAreUniqueAndDescribed) {
  std::set<std::string> keys;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(keys.insert(setting.key()).second) << setting.key();
    EXPECT_FALSE(setting.sentence.empty()) << setting.key();
    EXPECT_TRUE(setting.sentence.ends_with('.')) << setting.key();
    EXPECT_FALSE(setting.allowed.empty()) << setting.key();
  }
}

TEST(Settings, EverySectionIsOnePiece) {
  const std::vector<std::string> names = section_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.front(), "");
}

TEST(Settings, DefaultsAreAllowed) {
  const Configuration configuration;
  for (const Setting& setting : settings()) {
    LayerSpec layer;
    if (setting.name == "name" || setting.name == "size") continue;  // these have none
    Configuration scratch;
    const auto value = setting.get(configuration, &layer);
    if (!value) continue;
    EXPECT_TRUE(setting.set({&scratch, &layer, "/"}, *value)) << setting.key() << " = " << to_toml_text(*value);
  }
}

TEST(Settings, ARefusedValueChangesNothing) {
  for (const Setting& setting : settings()) {
    Configuration configuration;
    LayerSpec layer;
    const auto before = setting.get(configuration, &layer);
    EXPECT_FALSE(setting.set({&configuration, &layer, "/"}, UnusableValue{"1979-05-27"})) << setting.key();
    EXPECT_EQ(setting.get(configuration, &layer), before) << setting.key();
  }
}

TEST(Settings, HelpAndDocumentationHoldEveryKey) {
  const std::string text = settings_as_text();
  const std::string page = settings_as_markdown();
  for (const Setting& setting : settings()) {
    EXPECT_NE(text.find("  " + setting.name), std::string::npos) << setting.key();
    EXPECT_NE(page.find("| `" + setting.name + "` |"), std::string::npos) << setting.key();
  }
}

TEST(Settings, NearestKeyStaysInTheSectionUnlessAnotherIsNearer) {
  EXPECT_EQ(nearest_key("training", "epoch"), "training.epochs");
  EXPECT_EQ(nearest_key("optimizer", "lerning_rate"), "optimizer.learning_rate");
  EXPECT_EQ(nearest_key("training", "lerning_rate"), "optimizer.learning_rate");
  EXPECT_EQ(nearest_key("loss", "kinds"), "loss.kind");
  EXPECT_EQ(nearest_key("optimizer", "kinds"), "optimizer.kind");
  EXPECT_EQ(nearest_section("layer"), "layers");
}

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("epohcs", "epochs"), 1u);
  EXPECT_EQ(edit_distance("treshold", "threshold"), 1u);
}

}  // namespace
}  // namespace spikeloom
