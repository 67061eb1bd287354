// A run that was stopped anywhere and resumed ends with the same bits as one that never stopped.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tiny_run.hpp"

namespace spikeloom {
namespace {

/// Runs until `stop_after` batches more are done, again and again, to the end. Returns how often it was stopped.
int train_in_pieces(const TinyRun& run, const std::string& out, const std::vector<std::string>& changes,
                    int stop_after) {
  for (int stops = 0;; ++stops) {
    std::atomic<bool> stop{false};
    int calls = 0;
    HookedListener listener([&](std::string_view work, std::uint64_t) {
      if (work.starts_with("epoch") && ++calls == stop_after) stop = true;
    });
    TrainOptions options;
    options.out = run / out;
    options.resume = stops > 0;
    options.stop = &stop;
    try {
      train_run(run.configuration(changes), options, listener);
      return stops;
    } catch (const Interrupted& interrupted) {
      EXPECT_TRUE(contains(interrupted.what(), "--resume"));
    }
  }
}

class EveryResume : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(EveryResume, EndsWithTheBitsOfARunThatNeverStopped) {
  const TinyRun run;
  const std::vector<std::string> changes = GetParam();
  run.train("whole", changes);
  // A listener hears of a batch at most every 50 ms, and of the last one of an epoch always: stops fall mid-epoch or at
  // an epoch's end.
  for (const int stop_after : {1, 2}) {
    const std::string out = fmt::format("pieces{}", stop_after);
    EXPECT_GT(train_in_pieces(run, out, changes, stop_after), 0);
    expect_same_checkpoint(run / "whole" / "last.safetensors", run / out / "last.safetensors");
    expect_same_checkpoint(run / "whole" / "best.safetensors", run / out / "best.safetensors");
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, EveryResume,
    testing::Values(
        std::vector<std::string>{}, std::vector<std::string>{"optimizer.kind=\"sgd\"", "data.validation=0.0"},
        std::vector<std::string>{"optimizer.kind=\"adam\"", "optimizer.weight_decay=0.01",
                                 "optimizer.schedule=\"one_cycle\""},
        std::vector<std::string>{"optimizer.schedule=\"plateau\"", "optimizer.plateau_patience=0", "training.epochs=5"},
        std::vector<std::string>{"training.anneal_halving=9.5", "optimizer.schedule=\"cosine\"",
                                 "optimizer.warmup_steps=5"},
        std::vector<std::string>{"layers.one.recurrent=true", "optimizer.weight_decay=0.01"},
        std::vector<std::string>{"layers.one.neuron=\"adlif\"", "layers.one.recurrent=true",
                                 "layers.two.neuron=\"cuba_lif\"", "layers.two.learn=[\"decay_syn\"]"},
        std::vector<std::string>{"layers.one.neuron=\"se_adlif\"", "layers.two.neuron=\"alif\"",
                                 "layers.two.threshold=[0.8, 1.2]", "layers.two.learn=[\"threshold\", \"decay_adapt\"]",
                                 "training.accumulate=2", "optimizer.gradient_clip=0.5"},
        std::vector<std::string>{"augmentation.channel_shift=2", "augmentation.time_stretch=[0.8, 1.2]",
                                 "augmentation.drop=0.1", "augmentation.merge=0.5"},
        std::vector<std::string>{"training.accumulate=2", "training.early_stopping=1"},
        std::vector<std::string>{"layers.one.spike_budget=2", "layers.two.spike_budget=3"},
        std::vector<std::string>{"layers.one.dropout=0.5", "layers.two.dropout=0.2", "training.accumulate=2"},
        std::vector<std::string>{"layers.one.delay_steps=[0, 4]", "layers.two.delay_steps=1"},
        std::vector<std::string>{"training.bptt_steps=7", "layers.one.recurrent=true", "layers.one.dropout=0.5",
                                 "layers.two.delay_steps=[0, 4]", "layers.two.rescue_active=0.99",
                                 "layers.one.activity_target=0.02"},
        std::vector<std::string>{"layers.two.inputs=[\"one\", \"data\"]", "layers.out.inputs=[\"one\", \"two\"]"},
        std::vector<std::string>{"layers.one.activity_target=0.01", "layers.one.rescue_active=0.99",
                                 "layers.two.activity_target=0.02", "training.anneal_window=false",
                                 "layers.two.rescue_active=0.99", "training.epochs=5"}));

TEST(Resume, AnyBatchIsAGoodPlaceToStop) {
  const TinyRun run;
  run.train("whole");
  for (int leg = 0;; ++leg) {
    ASSERT_LT(leg, 3);
    // At the first batch: a new run's last words before it are of its initialisation, a resumed one's of its test set.
    std::atomic<bool> stop{false};
    int read = 0;
    HookedListener listener([&](std::string_view work, std::uint64_t done) {
      if (work == "reading" && done == 1) ++read;
      if (leg == 0 ? work == "initialising" && done == 3 : read == 2) stop = true;
    });
    TrainOptions options;
    options.out = run / "pieces";
    options.resume = leg > 0;
    options.stop = leg < 2 ? &stop : nullptr;
    try {
      train_run(run.configuration(), options, listener);
      break;
    } catch (const Interrupted&) {
    }
  }
  expect_same_checkpoint(run / "whole" / "last.safetensors", run / "pieces" / "last.safetensors");
}

TEST(Resume, ARunStoppedBeforeItsFirstBatchLeavesNothingBehind) {
  const TinyRun run;
  write_recordings(run / "train.h5", 5000, 1);
  for (const std::string at : {"reading", "initialising"}) {
    std::atomic<bool> stop{false};
    int heard = 0;
    HookedListener listener([&](std::string_view work, std::uint64_t) {
      if (stop) ++heard;
      if (work == at) stop = true;
    });
    TrainOptions options;
    options.out = run / "out";
    options.stop = &stop;
    EXPECT_TRUE(contains(message_of<Interrupted>([&] { train_run(run.configuration(), options, listener); }),
                         "stopped before training began"));
    EXPECT_EQ(heard, 0) << "work goes on after it was stopped while " << at;
    EXPECT_TRUE(!std::filesystem::exists(run / "out") || std::filesystem::is_empty(run / "out"));
  }
}

TEST(Resume, ARunStoppedWhileItIsTestedIsComplete) {
  const TinyRun run;
  run.train("whole");
  std::atomic<bool> stop{false};
  HookedListener listener([&](std::string_view work, std::uint64_t) { stop = stop || work == "testing"; });
  TrainOptions options;
  options.out = run / "out";
  options.stop = &stop;
  EXPECT_TRUE(contains(message_of<Interrupted>([&] { train_run(run.configuration(), options, listener); }), "saved"));
  expect_same_checkpoint(run / "whole" / "last.safetensors", run / "out" / "last.safetensors");
}

TEST(Resume, MoreEpochsContinueARunWhoseScheduleDoesNotCount) {
  const TinyRun run;
  run.train("whole", {"training.epochs=4"});
  run.train("pieces", {"training.epochs=2"});
  SilentListener listener;
  TrainOptions options;
  options.out = run / "pieces";
  options.resume = true;
  train_run(run.configuration({"training.epochs=4", "engine.threads=1"}), options, listener);
  expect_same_checkpoint(run / "whole" / "last.safetensors", run / "pieces" / "last.safetensors");
}

TEST(Resume, OtherSettingsAndOtherDataAreRefused) {
  const TinyRun run;
  run.train("out");
  SilentListener listener;
  TrainOptions options;
  options.out = run / "out";
  options.resume = true;
  const auto resume = [&](const std::vector<std::string>& changes) {
    return message_of<UserError>([&] { train_run(run.configuration(changes), options, listener); });
  };
  EXPECT_TRUE(contains(resume({"seed=9"}), "other settings"));
  write_recordings(run / "train.h5", 40, 1);
  EXPECT_TRUE(contains(resume({}), "same data"));
}

TEST(Resume, MetricsAreCutBackToTheCheckpoint) {
  const TinyRun run;
  run.train("out", {"training.epochs=2"});
  const std::filesystem::path metrics = run / "out" / "metrics.jsonl";
  write_text(metrics,
             read_text(metrics) + "{\"epoch\":3,\"train_loss\":0}\n{\"epoch\":4,\"tr");  // of a run that was killed
  SilentListener listener;
  TrainOptions options;
  options.out = run / "out";
  options.resume = true;
  train_run(run.configuration({"training.epochs=3"}), options, listener);
  std::istringstream lines(read_text(metrics));
  int epoch = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    EXPECT_EQ(object["epoch"], ++epoch);
    EXPECT_GT(object["train_loss"], 0.0);
  }
  EXPECT_EQ(epoch, 3);
}

TEST(Resume, AFolderWithoutACheckpointStartsAnew) {
  const TinyRun run;
  run.train("whole");
  std::filesystem::create_directory(run / "out");
  write_text(run / "out" / "last.safetensors.partial-1", "half a file");
  SilentListener listener;
  TrainOptions options;
  options.out = run / "out";
  options.resume = true;
  train_run(run.configuration(), options, listener);
  expect_same_checkpoint(run / "whole" / "last.safetensors", run / "out" / "last.safetensors");
  EXPECT_FALSE(std::filesystem::exists(run / "out" / "last.safetensors.partial-1"));
}

}  // namespace
}  // namespace spikeloom
