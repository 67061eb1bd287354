// Training recipes from the outside: what a run folder and a summary show of them.
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

using Weights = std::vector<float>;
Weights weights_of(const TinyRun& run, const std::string& out) {
  Weights all;
  const SafetensorsReader file(run / out / "last.safetensors");
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name.starts_with("optimizer.")) continue;
    if (!tensor.name.ends_with(".weight") && !tensor.name.ends_with(".bias")) continue;
    const std::vector<float> values = file.read(tensor.name, tensor.shape);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

double farthest(const Weights& a, const Weights& b) {
  EXPECT_EQ(a.size(), b.size());
  double distance = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) distance = std::max(distance, std::fabs(double{a[i]} - b[i]));
  return distance;
}

TEST(Accumulate, SeveralBatchesMakeTheUpdateOfOneLargeBatch) {
  const TinyRun run;
  // 40 samples: the last update of an epoch has four, and its last batch may have one.
  for (const std::string clip : {"0.0", "0.05"}) {
    const auto train = [&](const std::string& name, int batch, int accumulate) {
      const std::string out = name + clip;
      run.train(out, {"optimizer.kind=sgd", "optimizer.learning_rate=0.1", "optimizer.gradient_clip=" + clip,
                      "layers.two.dropout=0.3", "training.epochs=2", fmt::format("training.batch_size={}", batch),
                      fmt::format("training.accumulate={}", accumulate)});
      return weights_of(run, out);
    };
    const Weights whole = train("whole", 12, 1);
    run.train("start" + clip, {"training.epochs=0"});
    const double moved = farthest(whole, weights_of(run, "start" + clip));
    EXPECT_GT(moved, 1e-3);
    for (const auto& [batch, accumulate] : {std::pair{4, 3}, std::pair{3, 4}, std::pair{1, 12}}) {
      EXPECT_LT(farthest(whole, train(fmt::format("parts{}", batch), batch, accumulate)), 1e-3 * moved) << batch;
    }
    EXPECT_GT(farthest(whole, train("other", 4, 1)), 0.05 * moved);  // the comparison can fail
  }
}

TEST(Accumulate, EveryThreadCountGivesTheSameBits) {
  const TinyRun run;
  run.train("one", {"training.accumulate=2", "engine.threads=1"});
  run.train("three", {"training.accumulate=2", "engine.threads=3"});
  expect_same_checkpoint(run / "one" / "last.safetensors", run / "three" / "last.safetensors");
}

TEST(EarlyStopping, EndsARunWhoseValidationGetsNoBetterAndSaysSo) {
  const TinyRun run;
  const std::vector<std::string> changes{"optimizer.learning_rate=1e-12", "training.anneal_window=false",
                                         "training.early_stopping=2", "training.epochs=10"};
  HookedListener listener([](std::string_view, std::uint64_t) {});
  TrainOptions options;
  options.out = run / "out";
  const TrainSummary summary = train_run(run.configuration(changes), options, listener);
  EXPECT_TRUE(summary.stopped_early);
  const int best = std::stoi(SafetensorsReader(run / "out" / "best.safetensors").metadata().at("epoch"));
  EXPECT_EQ(summary.epochs, best + 2);
  EXPECT_LT(summary.epochs, 10);
  EXPECT_TRUE(contains(listener.notes.back(), fmt::format("the validation of epoch {} was not bettered", best)));
  // It stays where it stopped, unless asked otherwise.
  options.resume = true;
  EXPECT_EQ(train_run(run.configuration(changes), options, listener).epochs, summary.epochs);
  std::vector<std::string> on = changes;
  on.emplace_back("training.early_stopping=0");
  const TrainSummary whole = train_run(run.configuration(on), options, listener);
  EXPECT_FALSE(whole.stopped_early);
  EXPECT_EQ(whole.epochs, 10);
}

TEST(EarlyStopping, NeedsAValidationSet) {
  const TinyRun run;
  EXPECT_TRUE(contains(message_of<UserError>([&] {
                         run.configuration({"training.early_stopping=2", "data.validation=0.0"});
                       }),
                       "needs a validation set"));
}

double last_activity(const TinyRun& run, const std::string& out, const std::string& layer) {
  double sum = 0.0;
  const std::vector<nlohmann::json> epochs = metrics_of(run / out);
  const std::size_t count = 10;
  for (std::size_t i = epochs.size() - count; i < epochs.size(); ++i) sum += epochs[i]["activity"][layer].get<double>();
  return sum / count;
}

TEST(ActivityTarget, IsApproachedFromAboveAndBelow) {
  const TinyRun run;
  const std::vector<std::string> common{"training.epochs=60", "layers.one.init_rate=0.04"};
  run.train("free", common);
  const double free = last_activity(run, "free", "one");
  for (const double factor : {0.4, 2.0}) {  // without control the rate is 150 % above, or 50 % below
    const double target = factor * free;
    std::vector<std::string> changes = common;
    changes.push_back(fmt::format("layers.one.activity_target={}", target));
    const std::string out = fmt::format("times{}", factor);
    run.train(out, changes);
    EXPECT_NEAR(last_activity(run, out, "one"), target, 0.4 * target) << "unconstrained: " << free;
  }
}

TEST(ActivityTarget, NeedsALayerThatCanBeControlled) {
  const TinyRun run;
  const auto refused = [&](const std::vector<std::string>& changes) {
    return message_of<UserError>([&] { run.configuration(changes); });
  };
  EXPECT_TRUE(contains(refused({"layers.out.activity_target=0.1"}), "needs a layer that spikes"));
  EXPECT_TRUE(contains(refused({"layers.one.rescue_active=0.1", "layers.one.surrogate=triangle"}), "superspike"));
  EXPECT_EQ(run.configuration({"layers.one.activity_target=0.05"}).network.layers[0].init_rate, 0.05);
}

TEST(SpikeBudget, WhatItDropsIsReported) {
  const TinyRun run;
  HookedListener listener([](std::string_view, std::uint64_t) {});
  TrainOptions options;
  options.out = run / "tight";
  train_run(run.configuration({"layers.one.spike_budget=1", "training.epochs=1"}), options, listener);
  const nlohmann::json line = metrics_of(run / "tight").back();
  EXPECT_GT(line["dropped_spikes"]["one"], 0.1);
  EXPECT_LT(line["dropped_spikes"]["one"], 1.0);
  EXPECT_GT(line["dropped_gradients"]["one"], 0.1);
  EXPECT_EQ(line["dropped_spikes"]["two"], 0.0);
  EXPECT_TRUE(contains(listener.notes.back(), "over budget"));
  run.train("free", {"training.epochs=1"});
  EXPECT_FALSE(metrics_of(run / "free").back().contains("dropped_spikes"));

  EvalOptions eval;
  eval.run = run / "tight";
  const EvalReport report = evaluate_run(eval, listener);
  ASSERT_EQ(report.dropped_spikes.size(), 1U);
  EXPECT_EQ(report.dropped_spikes[0].first, "one");
  EXPECT_GT(report.dropped_spikes[0].second, 0.0);
  eval.run = run / "free";
  EXPECT_TRUE(evaluate_run(eval, listener).dropped_spikes.empty());
}

TEST(Rescue, ALayerThatStaysSilentWithoutItLearns) {
  const TinyRun run;
  const std::vector<std::string> silent{"training.anneal_window=false", "training.epochs=30", "layers.two.init=normal",
                                        "layers.two.init_gain=0.05"};
  const TrainSummary without = run.train("without", silent);
  EXPECT_EQ(metrics_of(run / "without").back()["never_fired"]["two"], 20);
  EXPECT_LT(without.train_accuracy, 0.6);
  std::vector<std::string> rescued = silent;
  rescued.emplace_back("layers.two.rescue_active=0.5");
  const TrainSummary with = run.train("with", rescued);
  EXPECT_LT(metrics_of(run / "with").back()["never_fired"]["two"], 10);
  EXPECT_GT(with.train_accuracy, 0.8);
  EXPECT_LT(metrics_of(run / "with").front()["window_low"]["two"], 0.0);
}

TEST(Seeds, EachRunIsThatOfItsSeedAloneAndTheSpreadIsTheirs) {
  const TinyRun run;
  SilentListener listener;
  TrainOptions options;
  options.out = run / "many";
  const SeedsSummary summary = train_seeds(run.configuration(), {4, 9, 5}, options, listener);
  ASSERT_EQ(summary.runs.size(), 3U);
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string out = fmt::format("seed-{}", summary.seeds[i]);
    const TrainSummary alone = run.train(out, {fmt::format("seed={}", summary.seeds[i])});
    expect_same_checkpoint(run / out / "last.safetensors", run / "many" / out / "last.safetensors");
    EXPECT_EQ(alone.test_accuracy, summary.runs[i].test_accuracy);
    sum += *alone.test_accuracy;
    squares += *alone.test_accuracy * *alone.test_accuracy;
  }
  EXPECT_NEAR(summary.test_accuracy->mean, sum / 3.0, 1e-12);
  EXPECT_NEAR(*summary.test_accuracy->deviation, std::sqrt((squares - sum * sum / 3.0) / 2.0), 1e-7);
  EXPECT_EQ(seeds_of_folder(run / "many"), (std::vector<std::uint64_t>{4, 9, 5}));
  const auto file = nlohmann::json::parse(read_text(run / "many" / "seeds.json"));
  EXPECT_EQ(file["test_accuracy"]["mean"], summary.test_accuracy->mean);
}

TEST(Seeds, OneValueHasNoSpread) {
  EXPECT_FALSE(spread_of({0.5}).deviation.has_value());
  EXPECT_DOUBLE_EQ(*spread_of({1.0, 3.0}).deviation, std::sqrt(2.0));
}

TEST(Seeds, AreResumedAsAWhole) {
  const TinyRun run;
  SilentListener silent;
  TrainOptions options;
  options.out = run / "whole";
  const std::vector<std::uint64_t> seeds{1, 2};
  train_seeds(run.configuration(), seeds, options, silent);
  options.out = run / "pieces";
  int stops = 0;
  for (;; ++stops) {
    ASSERT_LT(stops, 40);
    std::atomic<bool> stop{false};
    int calls = 0;
    HookedListener listener([&](std::string_view work, std::uint64_t) {
      if (work.starts_with("epoch") && ++calls == 2) stop = true;
    });
    options.stop = &stop;
    options.resume = stops > 0;
    try {
      train_seeds(run.configuration(), seeds, options, listener);
      break;
    } catch (const Interrupted& interrupted) {
      EXPECT_TRUE(contains(interrupted.what(), "as a whole"));
    }
  }
  EXPECT_GT(stops, 1);
  for (const char* name : {"seed-1/last.safetensors", "seed-2/last.safetensors", "seed-2/best.safetensors"})
    expect_same_checkpoint(run / "whole" / name, run / "pieces" / name);
  EXPECT_EQ(read_text(run / "whole" / "seeds.json"), read_text(run / "pieces" / "seeds.json"));
}

TEST(Seeds, FoldersOfOtherRunsAreRefused) {
  const TinyRun run;
  SilentListener listener;
  TrainOptions options;
  options.out = run / "out";
  const auto refused = [&](const std::vector<std::uint64_t>& seeds) {
    return message_of<UserError>([&] { train_seeds(run.configuration(), seeds, options, listener); });
  };
  EXPECT_TRUE(contains(refused({3, 3}), "named twice"));
  EXPECT_TRUE(contains(refused({}), "no seeds"));
  run.train("out", {"training.epochs=1"});
  EXPECT_TRUE(contains(refused({1, 2}), "holds a run of one seed"));
  options.out = run / "many";
  train_seeds(run.configuration({"training.epochs=0"}), {1, 2}, options, listener);
  EXPECT_TRUE(contains(refused({1, 2}), "--resume"));
  EXPECT_TRUE(contains(message_of<UserError>([&] { run.train("many"); }), "several seeds"));
  write_text(run / "many" / "seeds.json", "{\"seeds\": [1, -2]}");
  EXPECT_TRUE(contains(message_of<UserError>([&] { seeds_of_folder(run / "many"); }), "is damaged"));
}

}  // namespace
}  // namespace spikeloom
