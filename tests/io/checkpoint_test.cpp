#include "io/checkpoint.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "io/state_text.hpp"
#include "tiny_run.hpp"

namespace spikeloom {
namespace {

TrainingState odd_state() {
  TrainingState state;
  state.epoch = 7;
  state.position = 1234567890123ULL;
  state.step = 99;
  state.last_loss = 0.1;
  state.first_loss = 2.0 / 3.0;
  state.plateau.best = std::numeric_limits<double>::infinity();
  state.plateau.scale = 1.0 / 3.0;
  state.totals.loss = -5e-324;
  state.totals.activity = {0.1, 1e308, 0.0};
  state.totals.active_fraction = state.totals.dense_forward = state.totals.dense_backward = {1.0, 2.0, 3.0};
  state.totals.budget_spikes = state.totals.dropped_spikes = {0.0, 1e9, 3.0};
  state.totals.budget_gradients = state.totals.dropped_gradients = {0.0, 1e9, 3.0};
  state.activity.effort = {-0.1, 0.0, 9.9};
  state.activity.error = {1.0, -1.0, 1.0 / 3.0};
  state.activity.window_reach = {1.0, 1024.0, 1.1};
  state.best = BestEpoch{3, 0.7, std::nextafter(0.5, 1.0)};
  return state;
}

TEST(StateText, LosesNoBit) {
  const TrainingState state = odd_state();
  const Texts texts = state_to_texts(state);
  const TrainingState back = state_from_texts(texts, 3, "file");
  EXPECT_EQ(state_to_texts(back), texts);
  EXPECT_EQ(back.position, state.position);
  EXPECT_EQ(back.totals.loss, state.totals.loss);
  EXPECT_EQ(back.totals.activity, state.totals.activity);
  EXPECT_EQ(back.plateau, state.plateau);
  EXPECT_EQ(back.activity.effort, state.activity.effort);
  EXPECT_EQ(back.activity.window_reach, state.activity.window_reach);
  EXPECT_EQ(back.best->loss, state.best->loss);
}

TEST(StateText, EveryMissingOrMadeUpEntryIsRefusedByName) {
  const Texts good = state_to_texts(odd_state());
  for (const auto& [key, value] : good) {
    Texts texts = good;
    const bool may_be_missing = key == "best.epoch" || key == "first_loss";
    texts.erase(key);
    if (!may_be_missing) {
      EXPECT_TRUE(contains(message_of<UserError>([&] { state_from_texts(texts, 3, "file"); }), key));
    }
    for (const char* bad : {"x", "-1", "1e5", "0x1.8p+0 ", "nan", "99999999999999999999999"}) {
      texts[key] = bad;
      if (std::string(bad) == "-1" && value.find("0x") == 0) continue;
      EXPECT_TRUE(contains(message_of<UserError>([&] { state_from_texts(texts, 3, "file"); }), key))
          << key << " " << bad;
    }
  }
}

TEST(Checkpoint, HoldsRecurrentWeightsAsPyTorchDoes) {
  const TinyRun run;
  run.train("out", {"layers.one.recurrent=true", "training.epochs=1"});
  const SafetensorsReader file(run / "out" / "last.safetensors");
  const std::vector<std::uint64_t> square{70, 70};
  for (const char* name :
       {"one.recurrent_weight", "optimizer.m.one.recurrent_weight", "optimizer.v.one.recurrent_weight"}) {
    ASSERT_NE(file.find(name), nullptr) << name;
    EXPECT_EQ(file.find(name)->shape, square) << name;
  }
  EXPECT_EQ(file.find("two.recurrent_weight"), nullptr);
  const NetworkSpec network = run.configuration({"layers.one.recurrent=true"}).network;
  const Parameters parameters = read_parameters(file, network);
  EXPECT_EQ(parameters.layers[0].recurrent_weight, file.read("one.recurrent_weight", square));
  EXPECT_NE(parameters.layers[0].recurrent_weight, initial_parameters(network, 3).layers[0].recurrent_weight);
}

TEST(Checkpoint, HoldsDrawnDelays) {
  const TinyRun run;
  const std::vector<std::string> changes{"layers.one.delay_steps=[1, 9]", "training.epochs=1"};
  run.train("out", changes);
  const std::filesystem::path path = run / "out" / "last.safetensors";
  const std::vector<float> delays = SafetensorsReader(path).read("one.delay", std::vector<std::uint64_t>{70});
  const NetworkSpec network = run.configuration(changes).network;
  EXPECT_EQ(delays, initial_parameters(network, 3).layers[0].delay);
  EXPECT_EQ(read_parameters(SafetensorsReader(path), network).layers[0].delay, delays);
  EXPECT_EQ(SafetensorsReader(path).find("two.delay"), nullptr);

  // Delays that were drawn belong to the weights; one that is given stands.
  Parameters others = initial_parameters(network, 8);
  ASSERT_NE(others.layers[0].delay, delays);
  copy_matching_layers(SafetensorsReader(path), network, others);
  EXPECT_EQ(others.layers[0].delay, delays);
  const NetworkSpec fixed = run.configuration({"layers.one.delay_steps=2"}).network;
  others = initial_parameters(fixed, 8);
  copy_matching_layers(SafetensorsReader(path), fixed, others);
  EXPECT_EQ(others.layers[0].delay, std::vector<float>(70, 2.0F));

  std::string bytes = read_text(path);
  const float half = 0.5F;
  std::memcpy(bytes.data() + SafetensorsReader(path).find("one.delay")->begin + 8, &half, 4);
  write_text(path, bytes);
  EXPECT_TRUE(contains(message_of<UserError>([&] { read_parameters(SafetensorsReader(path), network); }),
                       "\"one.delay\", index 2: 0.5; allowed: whole numbers"));
}

TEST(TrainingHash, ForgetsOnlyWhatChangesNoBit) {
  const TinyRun run;
  const std::string hash = training_hash(run.configuration());
  for (const char* harmless : {"engine.threads=7", "training.epochs=50", "training.early_stopping=4"})
    EXPECT_EQ(training_hash(run.configuration({harmless})), hash) << harmless;
  for (const char* change : {"seed=4", "training.batch_size=9", "training.accumulate=2", "training.bptt_steps=5",
                             "layers.one.threshold=1.1", "optimizer.learning_rate=0.02", "data.steps=21",
                             "training.anneal_window=false", "loss.over=\"last\"", "data.validation=0.3"}) {
    EXPECT_NE(training_hash(run.configuration({change})), hash) << change;
  }
  const std::string cosine = "optimizer.schedule=\"cosine\"";
  EXPECT_NE(training_hash(run.configuration({cosine})),
            training_hash(run.configuration({cosine, "training.epochs=50"})));
}

}  // namespace
}  // namespace spikeloom
