// The losses' formulas, each said once, generic over the number type: float on the fast path, double in the reference
// of the gradient tests.
//
// Symbols: T steps, C classes, u[t][c] the membrane of the last layer, p[t] = softmax(u[t]), y the target distribution
// (one-hot, or smoothed: (1 - e) one-hot + e / C), CE(z) = log sum_c exp z_c - sum_c y_c z_c. Sums over time are in
// double, in the order of the steps.
//
//   cross_entropy   steps       1/T sum_t CE(u[t])            mean    CE(1/T sum_t u[t])
//                   steps_sum   sum_t CE(u[t])                max     CE(max_t u[t]), ties: the first step
//                   softmax_sum CE(sum_t p[t])                last    CE(u[T-1])
//   squared_error   1/C sum_c (r_c - target_c)^2 with r_c = spikes of class c per step for a spiking last layer, and
//   for one that does not spike
//                   what `over` names: each step's membrane (mean or sum over the steps), the mean of p[t], mean, max
//                   or last membrane
//   spike_count     CE(spike counts)
//
// Decisions: the class with the largest score; a tie counts as the lowest class, and as undecided.
//   sum       sum_t p[t][c]             mean, max, last   as above
//   majority  number of steps whose largest membrane is c's; a step in which several are largest (before the first
//   spike, say) has no vote automatic what the loss looks at: sum for softmax_sum, max for max, last for last, else
//   mean. (With steps and steps_sum the class of the largest
//             mean membrane is the one whose loss would be least: all classes share the same sum of log sum exp.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <spikeloom/configuration.hpp>

#include "core/elementary.hpp"
#include "engine/readout_loss.hpp"

namespace spikeloom {

/// The one number per class out of a trace that a loss over `over` looks at; losses of every step: the mean membrane.
inline DecisionKind summary_of(LossOver over) {
  switch (over) {
    case LossOver::softmax_sum:
      return DecisionKind::sum;
    case LossOver::max:
      return DecisionKind::max;
    case LossOver::last:
      return DecisionKind::last;
    case LossOver::steps:
    case LossOver::steps_sum:
    case LossOver::mean:
      break;
  }
  return DecisionKind::mean;
}

/// The decision, with what `automatic` stands for.
inline DecisionKind resolved_decision(const LossSpec& spec) {
  return spec.decision == DecisionKind::automatic ? summary_of(spec.over) : spec.decision;
}

/// The first step at which each class's membrane is largest. `output` is (steps, stride).
template <class Number>
std::vector<int> find_max_steps(const Number* output, int steps, int classes, int stride) {
  std::vector<int> result(classes, 0);
  std::vector<Number> largest(output, output + classes);
  for (int t = 1; t < steps; ++t) {
    const Number* row = output + static_cast<std::size_t>(t) * stride;
    for (int c = 0; c < classes; ++c) {
      if (!(row[c] > largest[c])) continue;
      largest[c] = row[c];
      result[c] = t;
    }
  }
  return result;
}

/// One sample's loss and gradient from the membranes of a last layer that does not spike. Keeps its buffers from sample
/// to sample.
template <class Number>
class MembraneLoss {
 public:
  /// See ReadoutLoss::evaluate_membrane. `forced_max_step` (classes) replaces find_max_steps, so that a reference looks
  /// where the fast path did.
  SampleResult evaluate(const LossSpec& spec, const Number* output, Number* gradient, int steps, int classes,
                        int stride, int label, double scale, const int* forced_max_step = nullptr) {
    output_ = output;
    gradient_ = gradient;
    steps_ = steps;
    classes_ = classes;
    stride_ = stride;
    label_ = label;
    row_ = (classes + kLanes - 1) / kLanes * kLanes;
    const DecisionKind decision = resolved_decision(spec);
    const bool every_step = spec.over == LossOver::steps || spec.over == LossOver::steps_sum;
    const bool cross_entropy = spec.kind == LossKind::cross_entropy;
    if ((every_step && cross_entropy) || spec.over == LossOver::softmax_sum || decision == DecisionKind::sum)
      compute_softmax();
    if (spec.over == LossOver::max || decision == DecisionKind::max) {
      max_step_ = forced_max_step ? std::vector<int>(forced_max_step, forced_max_step + classes)
                                  : find_max_steps(output, steps, classes, stride);
    }
    SampleResult result;
    if (every_step) {
      const double weight = spec.over == LossOver::steps ? 1.0 / steps : 1.0;
      result.loss =
          weight * (cross_entropy ? loss_of_steps(spec, scale * weight) : squared_error_of_steps(spec, scale * weight));
    } else {
      summarise(summary_of(spec.over), value_);
      if (spec.over == LossOver::softmax_sum && !cross_entropy) {
        for (double& value : value_) value /= steps;
      }
      slope_.assign(classes, 0.0);
      result.loss =
          cross_entropy ? cross_entropy_of(spec, label, value_, slope_) : squared_error_of(spec, label, value_, slope_);
      if (gradient) write_gradient(spec, scale);
    }
    decide(decision, result);
    return result;
  }

  /// CE of the logits `value`; its derivatives to `slope`.
  static double cross_entropy_of(const LossSpec& spec, int label, const std::vector<double>& value,
                                 std::vector<double>& slope) {
    const std::size_t classes = value.size();
    const double largest = *std::max_element(value.begin(), value.end());
    double sum = 0.0;
    for (std::size_t c = 0; c < classes; ++c) sum += slope[c] = exponential(value[c] - largest);
    double loss = logarithm(sum) + largest;
    for (std::size_t c = 0; c < classes; ++c) {
      const double wanted = target(spec, static_cast<int>(c), label, static_cast<int>(classes));
      slope[c] = slope[c] / sum - wanted;
      if (wanted != 0.0) loss -= wanted * value[c];
    }
    return loss;
  }

  /// 1/C sum_c (value - target)^2; its derivatives to `slope`.
  static double squared_error_of(const LossSpec& spec, int label, const std::vector<double>& value,
                                 std::vector<double>& slope) {
    const auto classes = static_cast<double>(value.size());
    double loss = 0.0;
    for (std::size_t c = 0; c < value.size(); ++c) {
      const double error = value[c] - (static_cast<int>(c) == label ? spec.target_rate : spec.wrong_target_rate);
      loss += error * error / classes;
      slope[c] = 2.0 * error / classes;
    }
    return loss;
  }

  /// Takes the largest score; several: the lowest class, undecided.
  static void take_largest(const std::vector<double>& score, SampleResult& result) {
    result.decision = 0;
    int shared = 1;
    for (std::size_t c = 1; c < score.size(); ++c) {
      if (score[c] > score[result.decision]) {
        result.decision = static_cast<int>(c);
        shared = 1;
      } else if (score[c] == score[result.decision]) {
        ++shared;
      }
    }
    result.undecided = shared > 1;
  }

 private:
  // Rows of the softmax are padded to this, so that the compiler makes whole vectors of them; sums over classes go over
  // this many lanes and then through a fixed tree, the same on every machine.
  static constexpr int kLanes = 8;

  static double target(const LossSpec& spec, int c, int label, int classes) {
    return (c == label ? 1.0 - spec.label_smoothing : 0.0) + spec.label_smoothing / classes;
  }

  const Number* membranes(int t) const { return output_ + static_cast<std::size_t>(t) * stride_; }
  Number* gradients(int t) const { return gradient_ + static_cast<std::size_t>(t) * stride_; }
  const Number* softmax(int t) const { return softmax_.data() + static_cast<std::size_t>(t) * row_; }

  /// softmax_ (steps, row_) = p, shift_[t] = max_c u, sum_[t] = sum_c exp(u - max).
  void compute_softmax() {
    const std::size_t size = static_cast<std::size_t>(steps_) * row_;
    softmax_.resize(size);
    shift_.resize(steps_);
    sum_.resize(steps_);
    for (int t = 0; t < steps_; ++t) {
      const Number* u = membranes(t);
      Number* to = softmax_.data() + static_cast<std::size_t>(t) * row_;
      Number largest = u[0];
      for (int c = 1; c < classes_; ++c) largest = u[c] > largest ? u[c] : largest;
      for (int c = 0; c < classes_; ++c) to[c] = u[c] - largest;
      for (int c = classes_; c < row_; ++c) to[c] = Number(-1000);  // exp: exactly 0
      shift_[t] = largest;
    }
    Number* flat = softmax_.data();
    for (std::size_t i = 0; i < size; ++i) flat[i] = exponential(flat[i]);
    for (int t = 0; t < steps_; ++t) {
      Number* p = softmax_.data() + static_cast<std::size_t>(t) * row_;
      Number lane[kLanes] = {};
      for (int c = 0; c < row_; c += kLanes) {
        for (int l = 0; l < kLanes; ++l) lane[l] += p[c + l];
      }
      for (int half = kLanes / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
      }
      sum_[t] = lane[0];
      const Number inverse = Number(1) / lane[0];
      for (int c = 0; c < row_; ++c) p[c] *= inverse;
    }
  }

  /// sum_t CE(u[t]); gradient scale (p - y).
  double loss_of_steps(const LossSpec& spec, double scale) {
    const double smooth = spec.label_smoothing / classes_;
    double loss = 0.0;
    for (int t = 0; t < steps_;) {
      // Logarithms are slow: one for the product of 16 sums, each between 1 and 2^20.
      double product = 1.0;
      for (const int end = std::min(t + 16, steps_); t < end; ++t) {
        const Number* u = membranes(t);
        product *= static_cast<double>(sum_[t]);
        loss += static_cast<double>(shift_[t]) - (1.0 - spec.label_smoothing) * static_cast<double>(u[label_]);
        if (smooth == 0.0) continue;
        for (int c = 0; c < classes_; ++c) loss -= smooth * static_cast<double>(u[c]);
      }
      loss += logarithm(product);
    }
    if (!gradient_) return loss;
    const auto factor = static_cast<Number>(scale);
    const auto all = static_cast<Number>(smooth);
    const auto right = static_cast<Number>(1.0 - spec.label_smoothing);
    for (int t = 0; t < steps_; ++t) {
      const Number* p = softmax(t);
      Number* g = gradients(t);
      for (int c = 0; c < classes_; ++c) g[c] = factor * (p[c] - all);
      g[label_] = factor * (p[label_] - all - right);
    }
    return loss;
  }

  double squared_error_of_steps(const LossSpec& spec, double scale) {
    double loss = 0.0;
    value_.resize(classes_);
    slope_.resize(classes_);
    for (int t = 0; t < steps_; ++t) {
      for (int c = 0; c < classes_; ++c) value_[c] = static_cast<double>(membranes(t)[c]);
      loss += squared_error_of(spec, label_, value_, slope_);
      if (!gradient_) continue;
      for (int c = 0; c < classes_; ++c) gradients(t)[c] = static_cast<Number>(scale * slope_[c]);
    }
    return loss;
  }

  /// One number per class out of the whole trace.
  void summarise(DecisionKind kind, std::vector<double>& value) const {
    value.assign(classes_, 0.0);
    switch (kind) {
      case DecisionKind::sum:
        for (int t = 0; t < steps_; ++t) {
          for (int c = 0; c < classes_; ++c) value[c] += static_cast<double>(softmax(t)[c]);
        }
        return;
      case DecisionKind::max:
        for (int c = 0; c < classes_; ++c) value[c] = static_cast<double>(membranes(max_step_[c])[c]);
        return;
      case DecisionKind::last:
        for (int c = 0; c < classes_; ++c) value[c] = static_cast<double>(membranes(steps_ - 1)[c]);
        return;
      case DecisionKind::majority:
        count_votes(value);
        return;
      case DecisionKind::mean:
      case DecisionKind::automatic:
        break;
    }
    for (int t = 0; t < steps_; ++t) {
      for (int c = 0; c < classes_; ++c) value[c] += static_cast<double>(membranes(t)[c]);
    }
    for (double& v : value) v /= steps_;
  }

  void count_votes(std::vector<double>& votes) const {
    for (int t = 0; t < steps_; ++t) {
      const Number* u = membranes(t);
      int best = 0;
      bool tie = false;
      for (int c = 1; c < classes_; ++c) {
        tie = u[c] > u[best] ? false : tie || u[c] == u[best];
        best = u[c] > u[best] ? c : best;
      }
      if (!tie) votes[best] += 1.0;
    }
  }

  /// From slope_ = dLoss/dvalue of the summary to every step's membrane.
  void write_gradient(const LossSpec& spec, double scale) const {
    if (spec.over == LossOver::softmax_sum) {
      if (spec.kind == LossKind::squared_error) scale /= steps_;
      for (int t = 0; t < steps_; ++t) {
        const Number* p = softmax(t);
        double mean = 0.0;
        for (int c = 0; c < classes_; ++c) mean += static_cast<double>(p[c]) * slope_[c];
        for (int c = 0; c < classes_; ++c) {
          gradients(t)[c] = static_cast<Number>(scale * (static_cast<double>(p[c]) * (slope_[c] - mean)));
        }
      }
      return;
    }
    const bool mean = spec.over == LossOver::mean;
    for (int t = 0; t < steps_; ++t) {
      Number* g = gradients(t);
      for (int c = 0; c < classes_; ++c) g[c] = mean ? static_cast<Number>(scale / steps_ * slope_[c]) : Number(0);
    }
    for (int c = 0; c < classes_; ++c) {
      if (spec.over == LossOver::max) gradients(max_step_[c])[c] = static_cast<Number>(scale * slope_[c]);
      if (spec.over == LossOver::last) gradients(steps_ - 1)[c] = static_cast<Number>(scale * slope_[c]);
    }
  }

  void decide(DecisionKind kind, SampleResult& result) {
    summarise(kind, score_);
    take_largest(score_, result);
  }

  const Number* output_ = nullptr;
  Number* gradient_ = nullptr;
  int steps_ = 0;
  int classes_ = 0;
  int stride_ = 0;
  int label_ = 0;
  int row_ = 0;  // classes_ rounded up to kLanes
  std::vector<Number> softmax_;
  std::vector<Number> shift_;
  std::vector<Number> sum_;
  std::vector<int> max_step_;
  std::vector<double> value_;
  std::vector<double> slope_;
  std::vector<double> score_;
};

/// One sample's loss from the spike counts of a spiking last layer. See ReadoutLoss::evaluate_counts. Silence is
/// undecided.
template <class Number>
SampleResult count_loss(const LossSpec& spec, const std::uint32_t* counts, Number* gradient, int steps, int classes,
                        int label, double scale) {
  std::vector<double> value(counts, counts + classes);
  SampleResult result;
  MembraneLoss<Number>::take_largest(value, result);
  result.undecided = result.undecided || value[result.decision] == 0.0;
  std::vector<double> slope(classes, 0.0);
  if (spec.kind == LossKind::squared_error) {
    for (double& v : value) v /= steps;
    result.loss = MembraneLoss<Number>::squared_error_of(spec, label, value, slope);
    scale /= steps;
  } else {
    result.loss = MembraneLoss<Number>::cross_entropy_of(spec, label, value, slope);
  }
  if (gradient) {
    for (int c = 0; c < classes; ++c) gradient[c] = static_cast<Number>(scale * slope[c]);
  }
  return result;
}

}  // namespace spikeloom
