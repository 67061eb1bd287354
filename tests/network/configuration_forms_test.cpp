// The different ways in which a setting can be written, in the file and by --set.
#include <gtest/gtest.h>

#include <limits>

#include "configuration_file.hpp"

namespace spikeloom {
namespace {

using testing::ConfigurationFile;
using testing::kMinimal;
using testing::load_text;

TEST(ConfigurationForms, PathsInTheFileAreRelativeToIt) {
  const ConfigurationFile file(
      "[data]\ntrain = \"sets/../train.h5\"\ntest = \"/data/test.h5\"\n[[layers]]\nsize = 2\nneuron = \"li\"\n");
  const Configuration c = load_configuration(file.path());
  EXPECT_EQ(c.data.train, file.folder() / "train.h5");
  EXPECT_EQ(c.data.test, "/data/test.h5");
}

TEST(ConfigurationForms, PathsOfSetAreRelativeToTheWorkingDirectory) {
  const Configuration c = load_text(kMinimal, {"data.train=a.h5", "data.test=\"b c.h5\"", "data.validation=sub/v.h5"});
  EXPECT_EQ(c.data.train, std::filesystem::current_path() / "a.h5");
  EXPECT_EQ(c.data.test, std::filesystem::current_path() / "b c.h5");
  EXPECT_EQ(c.data.validation_file, std::filesystem::current_path() / "sub/v.h5");
}

TEST(ConfigurationForms, AFileNextToTheWorkingDirectoryHasItsPathsThere) {
  const ConfigurationFile file(kMinimal);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(file.folder());
  const Configuration c = load_configuration("config.toml");
  std::filesystem::current_path(before);
  EXPECT_EQ(c.data.train, std::filesystem::canonical(file.folder()) / "train.h5");
}

struct Validation {
  const char* line;
  double fraction;
  bool file;
  std::vector<int> speakers;
};
class ValidationForm : public ::testing::TestWithParam<Validation> {};
TEST_P(ValidationForm, IsTheSameInFileAndSet) {
  const Validation& p = GetParam();
  std::string text = kMinimal;
  text.insert(text.find("[[layers]]"), std::string("validation") + p.line + "\n");
  for (const Configuration& c : {load_text(text), load_text(kMinimal, {std::string("data.validation") + p.line})}) {
    EXPECT_EQ(c.data.validation_fraction, p.fraction);
    EXPECT_EQ(!c.data.validation_file.empty(), p.file);
    EXPECT_EQ(c.data.validation_speakers, p.speakers);
  }
}
INSTANTIATE_TEST_SUITE_P(All, ValidationForm,
                         ::testing::Values(Validation{" = 0.1", 0.1, false, {}}, Validation{" = 0", 0.0, false, {}},
                                           Validation{" = \"v.h5\"", 0, true, {}},
                                           Validation{" = [4, 5]", 0, false, {4, 5}},
                                           Validation{" = {speakers = [4, 5]}", 0, false, {4, 5}},
                                           Validation{".speakers = [7]", 0, false, {7}}));

TEST(ConfigurationForms, ALaterFormOfValidationReplacesAnEarlierOne) {
  const Configuration c = load_text(kMinimal, {"data.validation=v.h5", "data.validation=[1]", "data.validation=0.2"});
  EXPECT_EQ(c.data.validation_fraction, 0.2);
  EXPECT_TRUE(c.data.validation_file.empty());
  EXPECT_TRUE(c.data.validation_speakers.empty());
}

TEST(ConfigurationForms, FoldIsPartOfParts) {
  const Configuration c = load_text(kMinimal, {"data.fold=2/5"});
  EXPECT_EQ(c.data.fold, 2);
  EXPECT_EQ(c.data.folds, 5);
  EXPECT_EQ(load_text(kMinimal, {"data.fold=\"2/5\""}).data.fold, 2);
}

TEST(ConfigurationForms, ConstantsAreOneNumberOrARange) {
  const LayerSpec one = load_text(kMinimal, {"layers.hidden.tau_mem_ms=20"}).network.layers[0];
  EXPECT_EQ(one.membrane.tau_ms, (Range{20, 20}));
  const LayerSpec range = load_text(kMinimal, {"layers.hidden.decay=[0.9, 0.99]"}).network.layers[0];
  EXPECT_TRUE(range.membrane.decay_given);
  EXPECT_EQ(range.membrane.decay, (Range{0.9, 0.99}));
  EXPECT_EQ(load_text(kMinimal, {"layers.hidden.delay_steps=3"}).network.layers[0].delay_steps, (Range{3, 3}));
  EXPECT_EQ(load_text(kMinimal, {"layers.hidden.delay_steps=[0, 3]"}).network.layers[0].delay_steps, (Range{0, 3}));
}

TEST(ConfigurationForms, InputsAreTheLayerBeforeUnlessTheyAreNamed) {
  const std::string text = kMinimal + "inputs = [\"data\", \"hidden\"]\n";
  NetworkSpec network = load_text(text, {"data.channels=12"}).network;
  EXPECT_EQ(network.sources_of(0), std::vector<int>{-1});
  EXPECT_EQ(network.sources_of(1), (std::vector<int>{-1, 0}));
  EXPECT_EQ(network.inputs_of(1), 20);
  EXPECT_EQ(load_text(to_toml(load_text(text))).network.layers[1].inputs, network.layers[1].inputs);
  network.layers[1].inputs.clear();
  EXPECT_EQ(network.sources_of(1), std::vector<int>{0});
  EXPECT_EQ(network.inputs_of(1), 8);
}

TEST(ConfigurationForms, TheLaterOfDecayAndTimeConstantCounts) {
  EXPECT_TRUE(load_text(kMinimal, {"layers.hidden.tau_mem_ms=20", "layers.hidden.decay=0.9"})
                  .network.layers[0]
                  .membrane.decay_given);
  EXPECT_FALSE(load_text(kMinimal, {"layers.hidden.decay=0.9", "layers.hidden.tau_mem_ms=20"})
                   .network.layers[0]
                   .membrane.decay_given);
}

TEST(ConfigurationForms, WindowsMayBeOpen) {
  const SurrogateSpec surrogate = load_text(kMinimal, {"layers.hidden.window=[-inf, 1.5]"}).network.layers[0].surrogate;
  EXPECT_EQ(surrogate.window_low, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(surrogate.window_high, 1.5);
}

TEST(ConfigurationForms, LaterOverridesWin) {
  EXPECT_EQ(load_text(kMinimal, {"training.epochs=3", "training.epochs=5"}).training.epochs, 5);
  EXPECT_EQ(load_text(kMinimal, {" training.epochs = 3 "}).training.epochs, 3);
}

TEST(ConfigurationForms, LayersAreAddressedByName) {
  const Configuration c = load_text(kMinimal, {"layers.readout.threshold=1.2", "layers.hidden.reset=subtract"});
  EXPECT_EQ(c.network.layers[0].threshold, 1.0);
  EXPECT_EQ(c.network.layers[1].threshold, 1.2);
  EXPECT_EQ(c.network.layers[0].reset, ResetKind::subtract);
}

TEST(ConfigurationForms, StepsOfATenthOfAMillisecondAreWholeMicroseconds) {
  for (const char* step : {"0.1", "0.3", "0.001", "1.001", "12", "999999.999"}) {
    EXPECT_NO_THROW(load_text(kMinimal, {std::string("data.step_ms=") + step})) << step;
  }
}

TEST(ConfigurationForms, SeedsReachThreeAndSixtyBits) {
  EXPECT_EQ(load_text(kMinimal, {"seed=9223372036854775807"}).seed, 9223372036854775807u);
}

}  // namespace
}  // namespace spikeloom
