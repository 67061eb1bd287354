// The rest of a training step: the loss, the update, copies of the dense mode, barriers.
#include <algorithm>

#include "core/aligned_buffer.hpp"
#include "kernels/optimizer_step.hpp"
#include "train/losses.hpp"
#include "train/measure/parts.hpp"
#include "train/measure/timing.hpp"

namespace spikeloom::measure {
namespace {

double loss_ns(int classes, int stride) {
  constexpr int kSteps = 500;
  NetworkSpec network;
  network.channels = 1;
  LayerSpec& readout = network.layers.emplace_back();
  readout.neuron = NeuronKind::leaky_integrator;
  readout.size = classes;
  const std::unique_ptr<ReadoutLoss> loss = make_readout_loss(LossSpec(), network);
  AlignedBuffer<float> output(static_cast<std::size_t>(kSteps) * stride), gradient(output.size());
  for (std::size_t i = 0; i < output.size(); ++i) output[i] = 0.01f * static_cast<float>(i % 97);
  const double ns = best_ns([&] {
    gradient.fill(0.0f);
    keep(loss->evaluate_membrane(output.data(), gradient.data(), kSteps, classes, stride, 0, 1.0));
    std::copy(gradient.begin(), gradient.end(), output.begin());
    for (std::size_t i = 0; i < output.size(); ++i) output[i] = 0.01f * static_cast<float>(i & 63);
  });
  return ns / kSteps;
}

void measure_loss(MachineFigures& figures) {
  const double few = loss_ns(8, 16), many = loss_ns(48, 64);
  figures.loss_output_ns = std::max(0.0, (many - few) / 40.0);
  figures.loss_step_ns = std::max(0.0, few - 8.0 * figures.loss_output_ns);
}

/// A worker's weights and moments, updated block by block with a gradient that has just been made: it is in L2.
struct UpdateCase {
  static constexpr std::size_t kBlock = std::size_t{1024} * 64;
  explicit UpdateCase(std::size_t parameters)
      : value(parameters), first(parameters), second(parameters), gradient(std::min(parameters, kBlock)) {
    gradient.fill(1e-3f);
  }
  void update() {
    for (std::size_t at = 0; at < value.size(); at += gradient.size()) {
      adam_step(step, value.data() + at, gradient.data(), first.data() + at, second.data() + at, gradient.size());
    }
  }
  AdamStep step;
  AlignedBuffer<float> value, first, second, gradient;
};

void measure_update(const Machine& machine, WorkerTeam& team, MachineFigures& figures) {
  const double l2 = machine.l2_bytes ? static_cast<double>(machine.l2_bytes) : 1e6;
  const double l3 = machine.l3_bytes ? static_cast<double>(machine.l3_bytes) : 8.0 * l2;
  // In L2, in L3, of which others may take a part, and as far beyond as 64 MB to 0.4 GB of weights and moments go.
  double last = 0.0;
  for (const double bytes : {0.4 * l2, 4.0 * l2, 12.0 * l2, 36.0 * l2, std::clamp(1.5 * l3, 64e6, 400e6)}) {
    const auto parameters = static_cast<std::size_t>(bytes / 12.0) / UpdateCase::kBlock * UpdateCase::kBlock;
    const std::size_t own = std::max(parameters, UpdateCase::kBlock / 4);
    const double own_bytes = 12.0 * static_cast<double>(own);
    if (own_bytes <= last) continue;
    last = own_bytes;
    UpdateCase alone(own);
    figures.adam_ns.x.push_back(own_bytes);
    figures.adam_ns.y.push_back(best_ns([&] { alone.update(); }) / static_cast<double>(own));
    // All workers together hold as much as one did.
    std::vector<std::unique_ptr<UpdateCase>> cases(team.size());
    const std::size_t share =
        std::max(UpdateCase::kBlock / 4, own / team.size() / UpdateCase::kBlock * UpdateCase::kBlock);
    team.run([&](int worker) { cases[worker] = std::make_unique<UpdateCase>(share); });
    figures.adam_all_ns.x.push_back(own_bytes);
    figures.adam_all_ns.y.push_back(best_wall_ns([&] { team.run([&](int worker) { cases[worker]->update(); }); }) /
                                    static_cast<double>(share));
  }
}

double copy_ns() {
  constexpr int kRows = 1024, kWidth = 64, kStride = 1024;
  AlignedBuffer<float> tile(kRows * kWidth), matrix(kRows * kStride);
  const double ns = best_ns([&] {
    for (int row = 0; row < kRows; ++row)
      std::copy_n(tile.data() + row * kWidth, kWidth, matrix.data() + row * kStride);
    keep(matrix[0]);
  });
  return ns / (kRows * kWidth);
}

}  // namespace

void measure_steps(const Machine& machine, WorkerTeam& team, MachineFigures& figures) {
  measure_loss(figures);
  measure_update(machine, team, figures);
  figures.copy_ns = copy_ns();
  constexpr int kRegions = 100;
  figures.barrier_ns = best_wall_ns([&] {
                         for (int i = 0; i < kRegions; ++i) team.run([](int) {});
                       }) /
                       kRegions;
}

}  // namespace spikeloom::measure
