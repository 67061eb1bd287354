#include "train/losses.hpp"

#include <spikeloom/error.hpp>

#include "network/checks.hpp"
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
  if (const auto conflict = find_conflict(spec, network)) throw UserError(conflict->message);
  return std::make_unique<ConfiguredLoss>(spec);
}

}  // namespace spikeloom
