#include <cstring>
#include <sstream>

#include "tiny_run.hpp"

namespace spikeloom {
namespace {

struct Row {
  int sample, label, decision, undecided;
  double loss;
};

std::vector<Row> predictions_of(const std::filesystem::path& path) {
  std::istringstream lines(read_text(path));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "sample,label,decision,undecided,loss");
  std::vector<Row> rows;
  while (std::getline(lines, line)) {
    Row row{};
    EXPECT_EQ(
        std::sscanf(line.c_str(), "%d,%d,%d,%d,%lf", &row.sample, &row.label, &row.decision, &row.undecided, &row.loss),
        5);
    rows.push_back(row);
  }
  return rows;
}

TEST(EvaluateRun, ReportConfusionAndPredictionsAgree) {
  const TinyRun run;
  const TrainSummary summary = run.train("out");
  SilentListener listener;
  EvalOptions options;
  options.run = run / "out";
  options.predictions = run / "predictions.csv";
  const EvalReport report = evaluate_run(options, listener);
  EXPECT_EQ(report.samples, 20U);
  EXPECT_EQ(report.accuracy, summary.test_accuracy.value());
  EXPECT_EQ(report.loss, summary.test_loss.value());
  const std::vector<Row> rows = predictions_of(run / "predictions.csv");
  ASSERT_EQ(rows.size(), 20U);
  std::vector<std::vector<std::uint64_t>> confusion(3, std::vector<std::uint64_t>(3, 0));
  double loss = 0.0;
  std::uint64_t undecided = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].sample, static_cast<int>(i));
    EXPECT_EQ(rows[i].label, static_cast<int>(i % 3));
    ++confusion[rows[i].label][rows[i].decision];
    loss += rows[i].loss / 20.0;
    undecided += rows[i].undecided;
  }
  EXPECT_EQ(report.confusion, confusion);
  EXPECT_NEAR(report.loss, loss, 1e-12);
  EXPECT_EQ(report.undecided, undecided);
}

TEST(EvaluateRun, BatchSizeAndThreadsChangeNothing) {
  const TinyRun run;
  run.train("out");
  SilentListener listener;
  EvalOptions options;
  options.run = run / "out";
  const EvalReport one = evaluate_run(options, listener);
  options.threads = 3;
  for (const char* batch : {"training.batch_size=1", "training.batch_size=7", "training.batch_size=500"}) {
    options.overrides = {batch};
    const EvalReport other = evaluate_run(options, listener);
    EXPECT_EQ(one.loss, other.loss);
    EXPECT_EQ(one.confusion, other.confusion);
    EXPECT_NEAR(one.activity[1].second, other.activity[1].second, 1e-12);
    EXPECT_NEAR(one.synaptic_operations_per_sample, other.synaptic_operations_per_sample, 1e-6);
  }
}

TEST(EvaluateRun, RecordedSpikesAreTheReportedActivity) {
  const TinyRun run;
  run.train("out");
  SilentListener listener;
  EvalOptions options;
  options.run = run / "out";
  options.record = "one.spikes";
  options.record_file = run / "spikes.csv";
  const EvalReport report = evaluate_run(options, listener);
  std::istringstream lines(read_text(run / "spikes.csv"));
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(line, "sample,step,neuron");
  double spikes = 0.0;
  while (std::getline(lines, line)) {
    int sample = -1, step = -1, neuron = -1;
    ASSERT_EQ(std::sscanf(line.c_str(), "%d,%d,%d", &sample, &step, &neuron), 3);
    EXPECT_TRUE(sample >= 0 && sample < 20 && step >= 0 && step < 20 && neuron >= 0 && neuron < 70);
    spikes += 1.0;
  }
  EXPECT_GT(spikes, 0.0);
  EXPECT_NEAR(report.activity[0].second, spikes / (20.0 * 20.0 * 70.0), 1e-12);
}

TEST(EvaluateRun, RecordedMembraneIsANumPyArrayThatDecides) {
  const TinyRun run;
  run.train("out");
  SilentListener listener;
  EvalOptions options;
  options.run = run / "out";
  options.record = "out.membrane";
  options.record_file = run / "out.npy";
  options.predictions = run / "predictions.csv";
  evaluate_run(options, listener);
  const std::string file = read_text(run / "out.npy");
  ASSERT_EQ(file.substr(1, 5), "NUMPY");
  const std::size_t header = 10 + static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
  EXPECT_EQ(header % 64, 0U);
  EXPECT_TRUE(contains(file.substr(0, header), "'shape': (20, 20, 3)"));
  ASSERT_EQ(file.size(), header + 20 * 20 * 3 * sizeof(float));
  std::vector<float> membrane(20 * 20 * 3);
  std::memcpy(membrane.data(), file.data() + header, membrane.size() * sizeof(float));
  for (const Row& row : predictions_of(run / "predictions.csv")) {
    double sum[3] = {};
    for (int step = 0; step < 20; ++step) {
      for (int c = 0; c < 3; ++c) sum[c] += membrane[(row.sample * 20 + step) * 3 + c];
    }
    for (const double other : sum) EXPECT_LE(other, sum[row.decision]);
  }
}

TEST(EvaluateRun, OtherDataIsEvaluatedWhole) {
  const TinyRun run;
  run.train("out", {"training.epochs=1"});
  write_recordings(run / "other.h5", 33, 9);
  SilentListener listener;
  EvalOptions options;
  options.run = run / "out" / "last.safetensors";
  options.data = run / "other.h5";
  const EvalReport report = evaluate_run(options, listener);
  EXPECT_EQ(report.samples, 33U);
  std::uint64_t counted = 0;
  for (const auto& row : report.confusion) {
    for (const std::uint64_t count : row) counted += count;
  }
  EXPECT_EQ(counted, 33U);
}

TEST(EvaluateRun, WhatIsWrongIsSaidByName) {
  const TinyRun run;
  run.train("out", {"training.epochs=1"});
  SilentListener listener;
  EvalOptions options;
  const auto said = [&] { return message_of<UserError>([&] { evaluate_run(options, listener); }); };
  options.run = run / "nothing";
  EXPECT_TRUE(contains(said(), "no such run"));
  options.run = run / "out";
  options.record_file = run / "record";
  options.record = "three.spikes";
  EXPECT_TRUE(contains(said(), "one, two, out"));
  options.record = "out.spikes";
  EXPECT_TRUE(contains(said(), "does not spike"));
  options.record = "one.colour";
  EXPECT_TRUE(contains(said(), "LAYER.membrane"));
  options.record.reset();
  // A NaN among the weights.
  const std::filesystem::path best = run / "out" / "best.safetensors";
  std::string bytes = read_text(best);
  const TensorInfo tensor = *SafetensorsReader(best).find("two.weight");
  const float nan = std::nanf("");
  std::memcpy(bytes.data() + tensor.begin + 12, &nan, 4);
  write_text(best, bytes);
  EXPECT_TRUE(contains(said(), "\"two.weight\", index 3"));
  // A decay that would grow.
  const float growing = 1.5F;
  std::memcpy(bytes.data() + SafetensorsReader(best).find("one.decay")->begin, &growing, 4);
  const float number = 0.0F;
  std::memcpy(bytes.data() + tensor.begin + 12, &number, 4);
  write_text(best, bytes);
  EXPECT_TRUE(contains(said(), "\"one.decay\", index 0"));
}

}  // namespace
}  // namespace spikeloom
