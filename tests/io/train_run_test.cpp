#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tiny_run.hpp"

namespace spikeloom {
namespace {

std::vector<nlohmann::json> metrics_of(const std::filesystem::path& out) {
  std::istringstream lines(read_text(out / "metrics.jsonl"));
  std::vector<nlohmann::json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(nlohmann::json::parse(line));
  return objects;
}

TEST(TrainRun, LearnsWhatCanBeLearned) {
  const TinyRun run;
  const TrainSummary summary = run.train("out", {"training.epochs=15"});
  EXPECT_GT(summary.train_accuracy, 0.8);
  EXPECT_GT(summary.test_accuracy.value(), 0.7);
}

TEST(TrainRun, EveryThreadCountGivesTheSameBits) {
  const TinyRun run;
  run.train("one", {"engine.threads=1"});
  for (const int threads : {2, 3, 7}) {
    const std::string out = fmt::format("threads{}", threads);
    run.train(out, {fmt::format("engine.threads={}", threads)});
    expect_same_checkpoint(run / "one" / "last.safetensors", run / out / "last.safetensors");
  }
}

TEST(TrainRun, TheSeedIsTheOnlyChance) {
  const TinyRun run;
  run.train("a");
  run.train("b");
  run.train("c", {"seed=4"});
  expect_same_checkpoint(run / "a" / "last.safetensors", run / "b" / "last.safetensors");
  const SafetensorsReader a(run / "a" / "last.safetensors");
  const SafetensorsReader c(run / "c" / "last.safetensors");
  const std::vector<std::uint64_t> shape{70, 12};
  EXPECT_NE(a.read("one.weight", shape), c.read("one.weight", shape));
}

TEST(TrainRun, ResolvedConfigurationMakesTheSameRun) {
  const TinyRun run;
  run.train("a");
  SilentListener listener;
  TrainOptions options;
  options.out = run / "b";
  train_run(load_configuration(run / "a" / "config.toml"), options, listener);
  expect_same_checkpoint(run / "a" / "last.safetensors", run / "b" / "last.safetensors");
}

TEST(TrainRun, BestIsTheEpochOfTheBestValidation) {
  const TinyRun run;
  run.train("out", {"training.epochs=6"});
  int best = 0;
  double accuracy = -1.0;
  double loss = 0.0;
  for (const nlohmann::json& epoch : metrics_of(run / "out")) {
    const double a = epoch["validation_accuracy"];
    const double l = epoch["validation_loss"];
    if (a > accuracy || (a == accuracy && l < loss)) {
      best = epoch["epoch"];
      accuracy = a;
      loss = l;
    }
  }
  EXPECT_EQ(SafetensorsReader(run / "out" / "best.safetensors").metadata().at("epoch"), fmt::format("{}", best));
}

TEST(TrainRun, WithoutValidationTheLastEpochIsTheBest) {
  const TinyRun run;
  const TrainSummary summary = run.train("out", {"data.validation=0.0"});
  EXPECT_FALSE(summary.validation_accuracy.has_value());
  const SafetensorsReader last(run / "out" / "last.safetensors");
  const SafetensorsReader best(run / "out" / "best.safetensors");
  const std::vector<std::uint64_t> shape{3, 20};
  EXPECT_EQ(last.read("out.weight", shape), best.read("out.weight", shape));
}

TEST(TrainRun, MetricsCountEverySampleOfEveryEpoch) {
  const TinyRun run;
  run.train("out");
  const std::vector<nlohmann::json> epochs = metrics_of(run / "out");
  ASSERT_EQ(epochs.size(), 3U);
  for (const nlohmann::json& epoch : epochs) {
    EXPECT_GT(epoch["samples"], 35);
    EXPECT_NE(epoch["samples"].get<int>() % 8, 0) << "the set should end in a partial batch";
    EXPECT_EQ(epoch["samples"], epochs[0]["samples"]);
    EXPECT_TRUE(epoch["activity"].contains("one"));
    EXPECT_FALSE(epoch["activity"].contains("out"));
    for (const char* phase : {"forward", "backward", "update", "data"}) EXPECT_GE(epoch["seconds"][phase], 0.0);
  }
}

TEST(TrainRun, ZeroEpochsWriteTheInitialStateAndStop) {
  const TinyRun run;
  const TrainSummary summary = run.train("out", {"training.epochs=0"});
  EXPECT_EQ(summary.epochs, 0);
  for (const char* name :
       {"config.toml", "last.safetensors", "best.safetensors", "environment.json", "metrics.jsonl"}) {
    EXPECT_TRUE(std::filesystem::exists(run / "out" / name)) << name;
  }
  EXPECT_EQ(SafetensorsReader(run / "out" / "last.safetensors").metadata().at("step"), "0");
}

TEST(TrainRun, RateInitialisationMeetsItsTarget) {
  const TinyRun run;
  for (const double rate : {0.01, 0.05, 0.1}) {
    const std::string out = fmt::format("rate{}", rate);
    run.train(out, {"training.epochs=1", "optimizer.learning_rate=1e-9", fmt::format("layers.one.init_rate={}", rate),
                    fmt::format("layers.two.init_rate={}", rate)});
    const nlohmann::json epoch = metrics_of(run / out)[0];
    EXPECT_NEAR(epoch["activity"]["one"], rate, 0.2 * rate);
    EXPECT_NEAR(epoch["activity"]["two"], rate, 0.2 * rate);
  }
}

TEST(TrainRun, OddShapesTrain) {
  const TinyRun run;
  run.train("larger_batch", {"training.batch_size=1000"});
  EXPECT_EQ(SafetensorsReader(run / "larger_batch" / "last.safetensors").metadata().at("step"), "3");
  run.train("one_sample", {"training.batch_size=1", "training.epochs=1"});
  run.train("one_step", {"data.steps=1"});
  run.train("joined_channels", {"data.channel_bin=5"});
  write_recordings(run / "train.h5", 30, 5, false);
  run.train("missing_class");
}

TEST(TrainRun, SamplesOfOneEventOrNoneAreTrainedAndCounted) {
  const TinyRun run;
  for (const char* name : {"train.h5", "test.h5"}) {
    ShdWriter file(run / name, {.channels = 12});
    for (int sample = 0; sample < 30; ++sample) {
      std::vector<Event> events;
      if (sample % 2 == 0) events.push_back({19'999, static_cast<std::uint32_t>(sample % 12)});
      file.add(events, sample % 3, 0);
    }
    file.finish({}, {});
  }
  const TrainSummary summary = run.train("out", {"data.validation=0.0"});
  EXPECT_TRUE(std::isfinite(summary.train_loss));
  for (const nlohmann::json& epoch : metrics_of(run / "out")) EXPECT_EQ(epoch["samples"], 30);
  SilentListener listener;
  EvalOptions options;
  options.run = run / "out";
  EXPECT_EQ(evaluate_run(options, listener).samples, 30U);
}

TEST(TrainRun, InitFromTakesWhatMatchesByNameAndShape) {
  const TinyRun run;
  run.train("first");
  HookedListener listener([](std::string_view, std::uint64_t) {});
  TrainOptions options;
  options.out = run / "second";
  options.init_from = run / "first" / "last.safetensors";
  train_run(run.configuration({"training.epochs=0", "layers.two.size=25", "seed=8"}), options, listener);
  const SafetensorsReader first(run / "first" / "last.safetensors");
  const SafetensorsReader second(run / "second" / "last.safetensors");
  const std::vector<std::uint64_t> matrix{70, 12};
  const std::vector<std::uint64_t> vector{70};
  EXPECT_EQ(first.read("one.weight", matrix), second.read("one.weight", matrix));
  EXPECT_EQ(first.read("one.decay", vector), second.read("one.decay", vector))
      << "drawn time constants belong to the weights";
  EXPECT_EQ(second.find("two.weight")->shape, (std::vector<std::uint64_t>{25, 70}));
  bool told = false;
  for (const std::string& note : listener.notes)
    told = told || (contains(note, "one.weight") && contains(note, "not taken: two.weight"));
  EXPECT_TRUE(told);
  options.out = run / "third";
  EXPECT_TRUE(contains(message_of<UserError>([&] {
                         train_run(run.configuration({"layers.one.size=71", "layers.two.size=25", "layers.out.size=4"}),
                                   options, listener);
                       }),
                       "no weights match"));
}

TEST(TrainRun, ANanStopsTheRunAndLeavesTheLastCheckpoint) {
  const TinyRun run;
  SilentListener listener;
  TrainOptions options;
  options.out = run / "out";
  const std::string said = message_of<NumericalError>([&] {
    train_run(run.configuration({"optimizer.learning_rate=1e5", "optimizer.weight_decay=1.0", "optimizer.kind=\"sgd\"",
                                 "training.epochs=20"}),
              options, listener);
  });
  EXPECT_TRUE(contains(said, "training step")) << said;
  const SafetensorsReader last(run / "out" / "last.safetensors");
  for (const TensorInfo& tensor : last.tensors()) EXPECT_NO_THROW(last.read(tensor.name, tensor.shape));
}

/// Whether a run says something like `text` in a warning.
bool warned_of(const TinyRun& run, const std::string& out, const std::vector<std::string>& changes,
               const std::string& text) {
  HookedListener listener([](std::string_view, std::uint64_t) {});
  TrainOptions options;
  options.out = run / out;
  train_run(run.configuration(changes), options, listener);
  for (const std::string& warning : listener.warnings) {
    if (contains(warning, text)) return true;
  }
  return false;
}

TEST(TrainRun, ALossThatEndsAboveWhereItStartedIsWarnedOf) {
  const TinyRun run;
  EXPECT_FALSE(warned_of(run, "learns", {}, "training diverged"));
  EXPECT_TRUE(warned_of(run, "diverges", {"optimizer.learning_rate=30", "optimizer.gradient_clip=0.0"},
                        "training diverged: its loss was 1."));
  EXPECT_FALSE(warned_of(run, "untrained", {"training.epochs=0"}, "training diverged"));
}

TEST(TrainRun, SilentAndSaturatedLayersAreNamed) {
  const TinyRun run;
  EXPECT_TRUE(warned_of(
      run, "silent",
      {"layers.two.init=\"normal\"", "layers.two.init_gain=1e-6", "optimizer.learning_rate=1e-9", "training.epochs=5"},
      "layer two is silent"));
  EXPECT_TRUE(warned_of(run, "busy",
                        {"layers.one.rate_lower=1.0", "layers.one.rate_lower_weight=1e4", "layers.one.reset=\"none\"",
                         "optimizer.learning_rate=0.1", "training.epochs=8"},
                        "layer one is saturated"));
}

TEST(TrainRun, TheSameFileAsTrainAndTestIsWarnedOf) {
  const TinyRun run;
  HookedListener listener([](std::string_view, std::uint64_t) {});
  TrainOptions options;
  options.out = run / "out";
  std::filesystem::create_symlink(run / "train.h5", run / "again.h5");
  train_run(run.configuration({"data.test=\"" + (run / "again.h5").string() + "\""}), options, listener);
  ASSERT_FALSE(listener.warnings.empty());
  EXPECT_TRUE(contains(listener.warnings[0], "same as data.train"));
}

TEST(TrainRun, SplitsNeverShareSamples) {
  const TinyRun run;
  const int all = 50;
  run.train("fold", {"data.test=\"\"", "data.fold=\"2/5\"", "data.validation=0.25", "training.epochs=1"});
  const int trained = metrics_of(run / "fold")[0]["samples"];
  SilentListener listener;
  EvalOptions options;
  options.run = run / "fold";
  const int tested = static_cast<int>(evaluate_run(options, listener).samples);
  EXPECT_EQ(tested, all / 5);
  EXPECT_LT(trained + tested, all);
  EXPECT_GT(trained, all / 2);
  run.train("speakers", {"data.validation={speakers=[1,2]}", "training.epochs=1"});
  EXPECT_EQ(metrics_of(run / "speakers")[0]["samples"], 25);
}

TEST(TrainRun, PlacesThatAreNoFoldersAreRefused) {
  const TinyRun run;
  write_text(run / "file", "x");
  EXPECT_TRUE(contains(message_of<UserError>([&] { run.train("file"); }), "no folder"));
  EXPECT_TRUE(contains(message_of<UserError>([&] { run.train("file/below"); }), "can't be created"));
  run.train("out", {"training.epochs=1"});
  EXPECT_TRUE(contains(message_of<UserError>([&] { run.train("out"); }), "--resume"));
}

TEST(TrainRun, ANetworkLargerThanMemoryIsRefusedWithItsSize) {
  const TinyRun run;
  EXPECT_TRUE(contains(message_of<ResourceError>([&] {
                         run.train("out", {"layers.one.size=1000000", "layers.two.size=1000000"});
                       }),
                       "GB"));
}

}  // namespace
}  // namespace spikeloom
