#include "train/losses.hpp"

#include <fmt/format.h>

#include <spikeloom/error.hpp>

#include "train/loss_formulas.hpp"

namespace spikeloom {
namespace {

class ConfiguredLoss final : public ReadoutLoss {
 public:
  explicit ConfiguredLoss(const LossSpec& spec) : spec_(spec) {}

  SampleResult evaluate_membrane(const float* output, float* gradient, int steps, int classes, int stride, int label,
                                 double scale) const override {
    // Called once per sample by every worker: each keeps its buffers.
    thread_local MembraneLoss<float> loss;
    return loss.evaluate(spec_, output, gradient, steps, classes, stride, label, scale);
  }

  SampleResult evaluate_counts(const std::uint32_t* counts, float* gradient, int steps, int classes, int label,
                               double scale) const override {
    return count_loss(spec_, counts, gradient, steps, classes, label, scale);
  }

 private:
  LossSpec spec_;
};

}  // namespace

std::unique_ptr<ReadoutLoss> make_readout_loss(const LossSpec& spec, const NetworkSpec& network) {
  const LayerSpec& last = network.layers.back();
  if (!last.spiking() && spec.kind == LossKind::spike_count) {
    throw UserError(
        fmt::format("loss.kind: spike_count needs a last layer that spikes, and \"{}\" does not; allowed: "
                    "cross_entropy, squared_error",
                    last.name));
  }
  if (last.spiking()) {
    if (spec.kind == LossKind::cross_entropy) {
      throw UserError(
          fmt::format("loss.kind: cross_entropy needs a last layer that does not spike (neuron = \"li\" or "
                      "\"linear\"), and \"{}\" does; "
                      "allowed: spike_count, squared_error",
                      last.name));
    }
    const bool by_count = spec.decision == DecisionKind::automatic || spec.decision == DecisionKind::sum ||
                          spec.decision == DecisionKind::mean;
    if (!by_count) {
      throw UserError(fmt::format(
          "loss.decision: the spike counts of layer \"{}\" allow only auto, sum and mean (most spikes)", last.name));
    }
  }
  return std::make_unique<ConfiguredLoss>(spec);
}

}  // namespace spikeloom
