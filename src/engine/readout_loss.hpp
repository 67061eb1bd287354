// What the engine asks of a loss: per sample, from the last layer's output over time to its gradient. The losses
// themselves are in train/.
#pragma once

#include <cstdint>

namespace spikeloom {

struct SampleResult {
  double loss = 0.0;       // this sample's loss, not divided by the batch
  int decision = 0;        // class decided for
  bool undecided = false;  // a tie or silence: the lowest class was taken
};

class ReadoutLoss {
 public:
  virtual ~ReadoutLoss() = default;

  /// One sample of a non-spiking last layer. `output` is (steps, stride): the membrane of class c at step t is output[t
  /// * stride + c], c < classes <= stride. If `gradient` is not null (same shape), writes scale * dLoss/dOutput for
  /// every c < classes and leaves the padding alone. `scale` is 1 / samples of the batch. Called from several threads
  /// at once.
  virtual SampleResult evaluate_membrane(const float* output, float* gradient, int steps, int classes, int stride,
                                         int label, double scale) const = 0;

  /// One sample of a spiking last layer, from its spike counts. Writes scale * dLoss/dcount[c] (the same for each
  /// step's spike).
  virtual SampleResult evaluate_counts(const std::uint32_t* counts, float* gradient, int steps, int classes, int label,
                                       double scale) const = 0;
};

}  // namespace spikeloom
