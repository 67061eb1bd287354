#include <gtest/gtest.h>

#include "configuration_file.hpp"

namespace spikeloom {
namespace {

using testing::error_of;
using testing::kMinimal;
using ::testing::Test;

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

/// kMinimal with one more line in its [data] section: line 3.
std::string with_data(const std::string& line) {
  std::string text = kMinimal;
  return text.insert(text.find("[[layers]]"), line + "\n");
}

/// kMinimal with one more line in its first layer: line 6.
std::string with_layer(const std::string& line) {
  std::string text = kMinimal;
  return text.insert(text.find("[[layers]]", text.find("hidden")), line + "\n");
}

TEST(ConfigurationErrors, UnknownKeyNamesPlaceValueNearestAndKnownKeys) {
  const std::string error = error_of(with_data("step = 10"));
  EXPECT_TRUE(error.starts_with("config.toml:3: unknown key data.step = 10; did you mean data.steps?")) << error;
  EXPECT_CONTAINS(error, "known keys of [data]: train, test, step_ms, steps, channels");
}

TEST(ConfigurationErrors, KeyInTheWrongSectionNamesTheRightOne) {
  EXPECT_CONTAINS(error_of(with_data("learning_rate = 0.1")), "did you mean optimizer.learning_rate?");
  EXPECT_CONTAINS(error_of("batch_size = 3\n" + kMinimal),
                  "config.toml:1: unknown key batch_size = 3; did you mean training.batch_size?");
}

TEST(ConfigurationErrors, UnknownKeyOfALayerNamesTheLayer) {
  const std::string error = error_of(with_layer("treshold = 2"));
  EXPECT_TRUE(
      error.starts_with("config.toml:6: unknown key layers.hidden.treshold = 2; did you mean layers.threshold?"))
      << error;
}

TEST(ConfigurationErrors, UnknownSectionNamesTheNearest) {
  const std::string error = error_of(kMinimal + "[optimiser]\n");
  EXPECT_TRUE(error.starts_with("config.toml:10: unknown section [optimiser]; did you mean [optimizer]?")) << error;
}

TEST(ConfigurationErrors, SectionsAndLayersHaveTheirOwnBrackets) {
  EXPECT_CONTAINS(error_of("[[data]]\ntrain = \"t\"\n"), "config.toml:1: the section [data] is written once");
  EXPECT_CONTAINS(error_of("[data]\ntrain = \"t\"\n[layers]\nsize = 3\n"),
                  "config.toml:3: a layer is written as [[layers]]");
  EXPECT_CONTAINS(error_of("loss = 3\n"),
                  "config.toml:1: loss = 3 is not allowed: loss is a section, written as [loss]");
}

struct BadLine {
  const char* line;
  const char* message;
};

class BadDataLine : public ::testing::TestWithParam<BadLine> {};
TEST_P(BadDataLine, NamesLineKeyValueAndAllowedValues) {
  EXPECT_EQ(error_of(with_data(GetParam().line)), std::string("config.toml:3: ") + GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    All, BadDataLine,
    ::testing::Values(
        BadLine{"steps = 0", "data.steps = 0 is not allowed: it must be a whole number from 1 to 1048576"},
        BadLine{"steps = 100.0", "data.steps = 100.0 is not allowed: it must be a whole number from 1 to 1048576"},
        BadLine{"steps = \"100\"", "data.steps = \"100\" is not allowed: it must be a whole number from 1 to 1048576"},
        BadLine{"steps = -9223372036854775808",
                "data.steps = -9223372036854775808 is not allowed: it must be a whole number from 1 to 1048576"},
        BadLine{
            "step_ms = 0.0005",
            "data.step_ms = 0.0005 is not allowed: it must be a whole number of microseconds, from 0.001 to 1e6 ms"},
        BadLine{
            "step_ms = 1.2345",
            "data.step_ms = 1.2345 is not allowed: it must be a whole number of microseconds, from 0.001 to 1e6 ms"},
        BadLine{"step_ms = nan",
                "data.step_ms = nan is not allowed: it must be a whole number of microseconds, from 0.001 to 1e6 ms"},
        BadLine{"counts = 1", "data.counts = 1 is not allowed: it must be true or false"},
        BadLine{"test = 3", "data.test = 3 is not allowed: it must be a path like data.train, or \"\" (none)"},
        BadLine{"fold = 1",
                "data.fold = 1 is not allowed: it must be \"k/n\" with 1 <= k <= n and 2 <= n <= 1000, or \"\" (none)"},
        BadLine{"fold = \"6/5\"",
                "data.fold = \"6/5\" is not allowed: it must be \"k/n\" with 1 <= k <= n and 2 <= n <= 1000, or \"\" "
                "(none)"},
        BadLine{"fold = \"0/5\"",
                "data.fold = \"0/5\" is not allowed: it must be \"k/n\" with 1 <= k <= n and 2 <= n <= 1000, or \"\" "
                "(none)"},
        BadLine{"fold = \"1/5x\"",
                "data.fold = \"1/5x\" is not allowed: it must be \"k/n\" with 1 <= k <= n and 2 <= n <= 1000, or \"\" "
                "(none)"},
        BadLine{"validation = 1.0",
                "data.validation = 1.0 is not allowed: it must be a fraction from 0 to 0.9 (0: none), a path, or "
                "speakers as [4, 5] or {speakers = [4, 5]}"},
        BadLine{"validation = [1.5]",
                "data.validation = [1.5] is not allowed: it must be a fraction from 0 to 0.9 (0: none), a path, or "
                "speakers as [4, 5] or {speakers = [4, 5]}"},
        BadLine{"validation = {speaker = [1]}",
                "data.validation = { speaker = [ 1 ] } is not allowed: it must be a fraction from 0 to 0.9 (0: none), "
                "a path, or speakers as [4, 5] or "
                "{speakers = [4, 5]}"},
        BadLine{"steps = 2020-01-01",
                "data.steps = 2020-01-01 is not allowed: it must be a whole number from 1 to 1048576"}));

class BadLayerLine : public ::testing::TestWithParam<BadLine> {};
TEST_P(BadLayerLine, NamesLineLayerValueAndAllowedValues) {
  EXPECT_EQ(error_of(with_layer(GetParam().line)), std::string("config.toml:6: layers.hidden.") + GetParam().message);
}
INSTANTIATE_TEST_SUITE_P(
    All, BadLayerLine,
    ::testing::Values(
        BadLine{"threshold = 0",
                "threshold = 0 is not allowed: it must be a number above 0 and up to 1e6, or [low, high] within"},
        BadLine{"threshold = true",
                "threshold = true is not allowed: it must be a number above 0 and up to 1e6, or [low, high] within"},
        BadLine{"decay = 1.01", "decay = 1.01 is not allowed: it must be a number from 0 to 1, or [low, high] within"},
        BadLine{"decay = [0.9, 0.8]",
                "decay = [0.9, 0.8] is not allowed: it must be a number from 0 to 1, or [low, high] within"},
        BadLine{"decay = [0.9]",
                "decay = [0.9] is not allowed: it must be a number from 0 to 1, or [low, high] within"},
        BadLine{"tau_mem_ms = 0.0",
                "tau_mem_ms = 0.0 is not allowed: it must be a number above 0 and up to 1e9, or [low, high] within"},
        BadLine{"tau_mem_ms = [10, inf]",
                "tau_mem_ms = [10.0, inf] is not allowed: it must be a number above 0 and up to 1e9, or [low, high] "
                "within"},
        BadLine{"window = [1.0, 1.0]",
                "window = [1.0, 1.0] is not allowed: it must be [low, high] with low < high; inf and -inf are allowed"},
        BadLine{"window = 0.9",
                "window = 0.9 is not allowed: it must be [low, high] with low < high; inf and -inf are allowed"},
        BadLine{"window = [nan, 1.0]",
                "window = [nan, 1.0] is not allowed: it must be [low, high] with low < high; inf and -inf are allowed"},
        BadLine{"reset = \"soft\"",
                "reset = \"soft\" is not allowed: it must be one of zero, subtract, subtract_after_decay, none"},
        BadLine{"recurrent = 1", "recurrent = 1 is not allowed: it must be true or false"},
        BadLine{"spike_budget = 0.01",
                "spike_budget = 0.01 is not allowed: it must be a whole number from 0 to 1048576 (ids, not a fraction "
                "of the layer)"},
        BadLine{"dropout = 1", "dropout = 1 is not allowed: it must be a number from 0 and below 1"},
        BadLine{
            "delay_steps = [0.5, 2]",
            "delay_steps = [0.5, 2.0] is not allowed: it must be a whole number from 0 to 1048576, or [low, high] of "
            "such"},
        BadLine{
            "delay_steps = [2, 1]",
            "delay_steps = [2.0, 1.0] is not allowed: it must be a whole number from 0 to 1048576, or [low, high] of "
            "such"},
        BadLine{"recurrent_init = \"uniform\"",
                "recurrent_init = \"uniform\" is not allowed: it must be one of orthogonal, normal"}));

TEST(ConfigurationErrors, AnUnknownPrecisionNamesTheKnownOnes) {
  EXPECT_EQ(error_of(kMinimal + "[engine]\nprecision = \"fp16\"\n"),
            "config.toml:11: engine.precision = \"fp16\" is not allowed: it must be one of fp32, bf16");
}

TEST(ConfigurationErrors, SyntaxNamesTheLine) {
  EXPECT_TRUE(error_of("seed = 1\nseed = = 2\n").starts_with("config.toml:2: "));
  EXPECT_TRUE(error_of("seed = 1\nseed = 2\n").starts_with("config.toml:2: "));
  EXPECT_TRUE(error_of(std::string("seed = 1\n\xff\xfe\n")).starts_with("config.toml:2: "));
}

TEST(ConfigurationErrors, MissingFileAndFolderAreNamed) {
  EXPECT_THROW(load_configuration("/nonexistent/config.toml"), UserError);
  EXPECT_THROW(load_configuration("/tmp"), UserError);
  try {
    load_configuration("/nonexistent/config.toml");
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "/nonexistent/config.toml: can't be read (No such file or directory); expected a configuration file (TOML)");
  }
}

TEST(ConfigurationErrors, WhatIsRequiredIsNamed) {
  EXPECT_EQ(error_of("[[layers]]\nsize = 3\nneuron = \"li\"\n"),
            "config.toml: data.train is missing: a path to training data is required");
  EXPECT_EQ(error_of("[data]\ntrain = \"t\"\n"), "config.toml: no layers: at least one [[layers]] is required");
  EXPECT_EQ(error_of("[data]\ntrain = \"t\"\n[[layers]]\nname = \"a\"\n"),
            "config.toml:3: layers.a.size is missing: the number of neurons is required");
  EXPECT_EQ(error_of(""), "config.toml: no layers: at least one [[layers]] is required");
}

TEST(ConfigurationErrors, TimeConstantAndDecayExcludeEachOther) {
  EXPECT_EQ(error_of(with_layer("decay = 0.9\ntau_mem_ms = 20")),
            "config.toml:6: layers.hidden has both decay and tau_mem_ms; give one of them");
}

TEST(ConfigurationErrors, OfNeuronsNameWhatTheirModelLacks) {
  EXPECT_EQ(error_of(with_layer("neuron = \"cuba_lif\"\ndecay_syn = 0.9\ntau_syn_ms = 20")),
            "config.toml:7: layers.hidden has both decay_syn and tau_syn_ms; give one of them");
  EXPECT_EQ(error_of(with_layer("learn = [\"decay_syn\"]")),
            "config.toml:6: layers.hidden.learn: lif neurons have no decay_syn to learn");
  EXPECT_CONTAINS(error_of(with_layer("learn = [\"decay\", \"tau\"]")),
                  "layers.hidden.learn = [\"decay\", \"tau\"] is not allowed: it must be a list of different ones of");
  EXPECT_CONTAINS(error_of(with_layer("learn = [\"decay\", \"decay\"]")), "a list of different ones of");
  EXPECT_CONTAINS(error_of(with_layer("neuron = \"alif\"\nreset_gradient = true")), "alif holds its reset constant");
  EXPECT_CONTAINS(error_of(with_layer("neuron = \"se_adlif\"\nreset = \"subtract_after_decay\"")),
                  "allowed: zero, subtract, none");
  EXPECT_CONTAINS(error_of(with_layer("neuron = \"if\"\ninput_scaling = \"leak\"")), "if neurons do not leak");
}

TEST(ConfigurationErrors, LayersThatDoNotSpikeStandLast) {
  const std::string start = "[data]\ntrain = \"t\"\n";
  const auto layer = [](const std::string& name, const std::string& neuron) {
    return "[[layers]]\nname = \"" + name + "\"\nneuron = \"" + neuron + "\"\nsize = 4\n";
  };
  EXPECT_EQ(
      error_of(start + layer("a", "li") + layer("b", "lif")),
      "config.toml:9: layer b (lif) follows layer a (li): layers that spike come first, then at most one li, then at "
      "most one linear");
  EXPECT_CONTAINS(error_of(start + layer("a", "lif") + layer("b", "li") + layer("c", "li")),
                  "config.toml:13: layer c (li) follows layer b (li)");
  EXPECT_CONTAINS(error_of(start + layer("a", "linear") + layer("b", "li")),
                  "config.toml:9: layer b (li) follows layer a (linear)");
  EXPECT_EQ(error_of(start + layer("a", "lif") + layer("b", "li") + layer("c", "linear")), "");
  EXPECT_EQ(error_of(start + layer("a", "li")), "");
}

TEST(ConfigurationErrors, NamesOfLayersDiffer) {
  EXPECT_EQ(error_of("[data]\ntrain = \"t\"\n[[layers]]\nname = \"a\"\nsize = 1\n[[layers]]\nname = \"a\"\nsize = "
                     "1\nneuron = \"li\"\n"),
            "config.toml:7: layers.a: the name a is taken by an earlier layer; names must differ");
  EXPECT_CONTAINS(error_of("[data]\ntrain = \"t\"\n[[layers]]\nname = \"a.b\"\nsize = 1\n"),
                  "config.toml:4: layers[1].name = \"a.b\" is not allowed");
}

TEST(ConfigurationErrors, LossAndLastLayerFit) {
  EXPECT_CONTAINS(error_of(kMinimal + "[loss]\nkind = \"spike_count\"\n"),
                  "config.toml:11: loss.kind = \"spike_count\" needs a last layer that spikes");
  EXPECT_EQ(error_of(kMinimal + "[loss]\nkind = \"squared_error\"\n"), "");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.readout.neuron=lif"}),
                  "--set: loss.kind = \"cross_entropy\" needs a last layer that does not spike");
  EXPECT_EQ(error_of(kMinimal, {"layers.readout.neuron=lif", "loss.kind=spike_count"}), "");
  EXPECT_EQ(error_of(kMinimal, {"layers.readout.neuron=lif", "loss.kind=squared_error", "loss.decision=sum"}), "");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.readout.neuron=lif", "loss.kind=spike_count", "loss.decision=last"}),
                  "loss.decision must be auto, sum or mean");
}

TEST(ConfigurationErrors, MoreClassesThanOutputs) {
  EXPECT_EQ(error_of(with_data("classes = 5")),
            "config.toml:3: data.classes = 5 is more than the 4 neurons of the last layer, readout");
}

TEST(ConfigurationErrors, FoldAndTestExcludeEachOther) {
  EXPECT_CONTAINS(error_of(with_data("test = \"x\"\nfold = \"1/5\"")),
                  "config.toml:4: data.fold = \"1/5\" makes the test set from data.train");
  EXPECT_EQ(error_of(with_data("test = \"x\""), {"data.fold=1/5", "data.test="}), "");
}

TEST(ConfigurationErrors, OnlyLayersThatSpikeAreRecurrent) {
  EXPECT_EQ(error_of(with_layer("recurrent = true")), "");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.readout.recurrent=true"}),
                  "layers.readout: recurrent = true needs a layer that spikes (neuron = \"lif\" or another model), but "
                  "readout is li");
}

TEST(ConfigurationErrors, WhatGoesToTheNextLayerNeedsSpikesAndANextLayer) {
  EXPECT_EQ(error_of(with_layer("spike_budget = 3")), "");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.readout.spike_budget=3"}),
                  "layers.readout.spike_budget needs a layer that spikes, but readout is li");
  const std::string spiking_last = kMinimal + "spike_budget = 3\n[loss]\nkind = \"spike_count\"\n";
  EXPECT_EQ(error_of(spiking_last, {"layers.readout.neuron=lif"}),
            "config.toml:10: layers.readout.spike_budget needs a layer after readout, which is the last one");
}

TEST(ConfigurationErrors, ADelayIsShorterThanASample) {
  EXPECT_EQ(error_of(with_layer("delay_steps = [4, 100]"), {"data.steps=5"}), "");
  EXPECT_CONTAINS(error_of(with_layer("delay_steps = 5"), {"data.steps=5"}),
                  "config.toml:6: layers.hidden.delay_steps of 5 lets no spike arrive within the 5 steps of a sample");
}

TEST(ConfigurationErrors, ADelayLetsGradientsThroughWithinAChunk) {
  const std::string delayed = with_layer("delay_steps = [4, 9]");
  for (const char* chunk : {"training.bptt_steps=5", "training.bptt_steps=50", "training.bptt_steps=0"})
    EXPECT_EQ(error_of(delayed, {"data.steps=50", chunk}), "") << chunk;
  EXPECT_EQ(
      error_of(delayed, {"data.steps=50", "training.bptt_steps=4"}),
      "--set: training.bptt_steps = 4 lets no gradient reach layer hidden, whose spikes arrive 4 steps later or more "
      "(layers.hidden.delay_steps): it must be more than that, or 0");
  EXPECT_CONTAINS(error_of(kMinimal, {"training.bptt_steps=-1"}), "training.bptt_steps");
}

TEST(ConfigurationErrors, ABudgetIsNotForRecurrentLayers) {
  EXPECT_CONTAINS(error_of(with_layer("recurrent = true\nspike_budget = 3")),
                  "config.toml:7: layers.hidden.spike_budget limits the list that goes to the next layer");
}

TEST(ConfigurationErrors, InputsAreOtherLayersThatSpikeEachOnce) {
  const auto with_inputs = [](const std::string& inputs) {
    return error_of(kMinimal, {"layers.readout.inputs=" + inputs});
  };
  EXPECT_EQ(with_inputs("[\"hidden\", \"data\"]"), "");
  EXPECT_EQ(with_inputs("[]"), "");
  EXPECT_EQ(with_inputs("[\"hiden\"]"), "--set: layers.readout.inputs: hiden is no layer; allowed: data, hidden");
  EXPECT_CONTAINS(with_inputs("[\"readout\"]"), "readout names itself: recurrent = true gives a layer its own spikes");
  EXPECT_CONTAINS(with_inputs("[\"hidden\", \"hidden\"]"), "hidden is named twice");
  EXPECT_CONTAINS(with_inputs("[\"data\"]"), "layers.hidden: no layer takes its spikes");
  EXPECT_CONTAINS(with_inputs("[1]"), "layers.readout.inputs = [1.0] is not allowed: it must be a list of names");
  EXPECT_CONTAINS(with_inputs("\"hidden\""), "it must be a list of names of layers or \"data\"");
  const std::string three = kMinimal + "[[layers]]\nname = \"out\"\nneuron = \"linear\"\nsize = 4\n";
  EXPECT_CONTAINS(error_of(three, {"layers.out.inputs=[\"readout\"]"}), "readout does not spike");
  EXPECT_CONTAINS(error_of(three, {"layers.out.inputs=[\"hidden\"]"}), "takes its membranes");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.hidden.dropout=0.5", "layers.readout.inputs=[\"hidden\", \"data\"]"}),
                  "the same dropout");
}

TEST(ConfigurationErrors, FeedbackJoinsLayersThatSpikeAndSendAllAtOnce) {
  const std::string three =
      "[data]\ntrain = \"t\"\nchannels = 3\nsteps = 9\n"
      "[[layers]]\nname = \"a\"\nsize = 5\n[[layers]]\nname = \"b\"\nsize = 5\n"
      "[[layers]]\nname = \"out\"\nneuron = \"li\"\nsize = 4\n";
  const auto with = [&](std::vector<std::string> set) { return error_of(three, set); };
  EXPECT_EQ(with({"layers.a.inputs=[\"data\", \"b\"]"}), "");
  EXPECT_EQ(with({"layers.a.inputs=[\"data\", \"b\"]", "layers.a.recurrent=true"}), "");
  EXPECT_CONTAINS(with({"layers.a.inputs=[\"data\", \"out\"]"}), "out does not spike");
  EXPECT_CONTAINS(with({"layers.a.inputs=[\"b\"]"}), "layers.a.inputs: no spike of the data reaches a");
  EXPECT_CONTAINS(with({"layers.a.inputs=[\"data\", \"b\"]", "layers.out.inputs=[\"data\"]"}),
                  "layers.a: its spikes do not reach the last layer, out");
  EXPECT_CONTAINS(
      with({"layers.a.inputs=[\"data\", \"b\"]", "layers.b.delay_steps=2"}),
      "layers.b.delay_steps changes when or which spikes of b arrive; the lists of layers that feedback joins "
      "(a, b) are exchanged step by step, as they are: set delay_steps = 0");
  EXPECT_CONTAINS(with({"layers.a.inputs=[\"data\", \"b\"]", "layers.a.spike_budget=2"}),
                  "layers.a.spike_budget changes");
  EXPECT_CONTAINS(with({"layers.a.inputs=[\"data\", \"b\"]", "layers.b.dropout=0.5"}), "the same dropout");
  const std::vector<std::string> in_chunks{"layers.a.inputs=[\"data\", \"b\"]", "training.bptt_steps=8"};
  EXPECT_CONTAINS(with(in_chunks),
                  "across which feedback (layers.a.inputs names b, a later layer) is not carried: set it to 0");
  EXPECT_CONTAINS(with({"layers.a.inputs=[\"b\"]", "layers.b.inputs=[\"data\"]", "layers.out.inputs=[\"a\"]",
                        "training.bptt_steps=8"}),
                  "layers.a.inputs names b");
  EXPECT_EQ(with({"layers.a.inputs=[\"data\", \"b\"]", "training.bptt_steps=9"}), "");
}

TEST(ConfigurationErrors, RatesAreInOrder) {
  EXPECT_EQ(error_of(with_layer("rate_lower = 0.5\nrate_upper = 0.1")),
            "config.toml:6: layers.hidden: rate_lower = 0.5 is above rate_upper = 0.1");
}

TEST(ConfigurationErrors, OverridesNameThemselves) {
  EXPECT_EQ(error_of(kMinimal, {"training.epochs"}),
            "--set training.epochs: expected key=value, for example training.epochs=3 or layers.hidden1.threshold=1.2");
  EXPECT_EQ(error_of(kMinimal, {"training.epochs=-1"}),
            "--set: training.epochs = -1 is not allowed: it must be a whole number from 0 to 1000000");
  EXPECT_EQ(error_of(kMinimal, {"training.epochs=many"}),
            "--set: training.epochs = \"many\" is not allowed: it must be a whole number from 0 to 1000000");
  EXPECT_CONTAINS(error_of(kMinimal, {"training.epoch=1"}),
                  "--set: unknown key training.epoch = 1; did you mean training.epochs?");
  EXPECT_CONTAINS(error_of(kMinimal, {"trainnig.epochs=1"}),
                  "--set trainnig.epochs=1: unknown section trainnig; did you mean training?");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.hiden.size=1"}),
                  "--set layers.hiden.size=1: there is no layer hiden; did you mean hidden? layers: hidden, readout");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.size=1"}), "did you mean layers.NAME?");
  EXPECT_CONTAINS(error_of(kMinimal, {"layers.hidden.sise=1"}),
                  "--set: unknown key layers.hidden.sise = 1; did you mean layers.size?");
  EXPECT_CONTAINS(error_of(kMinimal, {"sed=1"}), "--set: unknown key sed = 1; did you mean seed?");
}

TEST(ConfigurationErrors, NoneOfThemHasALineBreak) {
  for (const char* line : {"steps = \"a\\nb\"", "steps = [1,\n 2, \"x\"]", "x = {a = 1, b = [1, 2]}"}) {
    const std::string error = error_of(with_data(line));
    EXPECT_FALSE(error.empty()) << line;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(ValidateNetwork, HoldsProgramsToTheSameTable) {
  NetworkSpec network = testing::load_text(kMinimal).network;
  EXPECT_NO_THROW(validate(network));
  network.layers[0].threshold = -1.0;
  EXPECT_THROW(validate(network), UserError);
  network.layers[0].threshold = 1.0;
  network.layers[0].surrogate.window_low = 2.0;
  network.layers[0].surrogate.window_high = 1.0;
  EXPECT_THROW(validate(network), UserError);
  EXPECT_THROW(validate(NetworkSpec{}), UserError);
}

}  // namespace
}  // namespace spikeloom
