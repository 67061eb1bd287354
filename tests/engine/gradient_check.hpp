// The engine's gradient of a case beside the dense float64 reference's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/reference.hpp"
#include "random_case.hpp"
#include "train/loss_formulas.hpp"
#include "train/losses.hpp"

namespace spikeloom::testing {

/// The reference's loss from the formulas that the fast path uses too, looking at the fast path's maximum steps.
template <class Number>
ReferenceLoss<Number> reference_loss(const Case& test, const std::vector<std::vector<int>>& max_steps) {
  const LayerSpec& last = test.network.layers.back();
  const int steps = test.batch.steps, classes = last.size;
  return [&test, &max_steps, &last, steps, classes](int sample, const Number* output, Number* gradient, int label,
                                                    Number scale) {
    if (last.spiking()) {
      std::vector<std::uint32_t> counts(classes);
      for (int c = 0; c < classes; ++c) counts[c] = static_cast<std::uint32_t>(output[c]);
      return count_loss<Number>(test.loss, counts.data(), gradient, steps, classes, label, static_cast<double>(scale))
          .loss;
    }
    MembraneLoss<Number> loss;
    const int* forced = max_steps.empty() ? nullptr : max_steps[sample].data();
    return loss
        .evaluate(test.loss, output, gradient, steps, classes, classes, label, static_cast<double>(scale), forced)
        .loss;
  };
}

template <class Number>
double norm_of_difference(const std::vector<Number>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i)
    sum += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
  return std::sqrt(sum);
}

inline double norm(const std::vector<double>& a) { return norm_of_difference(std::vector<double>(a.size(), 0.0), a); }

/// Deltas in bf16 have a relative error of up to 2^-9, and it falls anywhere in that; each layer that they come through
/// adds its own.
inline double bf16_tolerance(std::size_t layers) {
  return std::max(5e-3, std::pow(1.0 + std::ldexp(1.0, -9), static_cast<double>(layers)) - 1.0);
}

/// `fast`, `single` and `exact` are one parameter's gradients by the engine, by dense float32 and by dense float64.
inline void expect_close(const std::string& name, std::size_t half_layers, const std::vector<float>& fast,
                         const std::vector<float>& single, const std::vector<double>& exact) {
  ASSERT_EQ(fast.size(), exact.size()) << name;
  const double size = norm(exact);
  if (size < 1e-30) {
    EXPECT_LT(norm_of_difference(fast, exact), 1e-25) << name << ": the exact gradient is zero";
    return;
  }
  const double error = norm_of_difference(fast, exact) / size;
  const double single_error = norm_of_difference(single, exact) / size;
  if (half_layers > 0) {
    EXPECT_LE(error, bf16_tolerance(half_layers)) << name;
    return;
  }
  EXPECT_LE(error, std::min(1e-4, std::max(1e-5, 3.0 * single_error)))
      << name << ": dense float32 has " << single_error;
}

struct Totals {
  std::uint64_t decisions = 0;
  std::uint64_t differing = 0;
};

/// The weights as the list passes of `plan` read them.
inline Parameters as_read(const Plan& plan, Parameters parameters) {
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    if (!plan.layers[l].half_rows) continue;
    for (float& weight : parameters.layers[l].weight) {
      int exponent;
      const double mantissa = std::frexp(static_cast<double>(weight), &exponent);
      weight = static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
    }
  }
  return parameters;
}

inline constexpr DropoutDraw kDropout{7, 3, 5};

/// Small groups, and both schedules of recurrent layers.
inline Plan busy_plan(const NetworkSpec& network, EngineMode mode, int workers,
                      EnginePrecision precision = EnginePrecision::fp32, int bptt_steps = 0) {
  Plan plan = make_plan(network, mode, workers, precision, bptt_steps);
  plan.delta_rows = 64;
  for (LayerPlan& layer : plan.layers) layer.partial_budget_bytes = 1 << 16;
  plan.recurrent_samples = 5;
  plan.recurrent_delta_bytes = plan.shared_delta_bytes = 1 << 18;
  for (std::size_t l = 0; l < plan.layers.size(); ++l) {
    plan.layers[l].step_schedule = (l + workers) % 2 == 0 ? StepSchedule::sample_major : StepSchedule::step_major;
  }
  return plan;
}

inline void set_up(Engine& engine, const Case& test) {
  engine.import_parameters(test.parameters);
  engine.set_window_low(test.window_low);
  engine.set_dropout(kDropout);
}

/// What each spiking layer of an engine did in its last batch.
inline std::vector<ForcedDecisions> decisions_of(Engine& engine) {
  std::vector<ForcedDecisions> decisions;
  for (int l = 0; l < static_cast<int>(engine.network().layers.size()); ++l) {
    if (engine.network().layers[l].spiking()) decisions.push_back({engine.spikes(l), engine.active(l)});
  }
  return decisions;
}

/// How many layers with bf16 deltas the gradient of layer `l` comes through, itself included.
inline std::size_t half_layers_above(const NetworkSpec& network, const Plan& plan, std::size_t l) {
  std::vector<bool> reached(network.layers.size(), false);
  reached[l] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t other = 0; other < reached.size(); ++other) {
      for (const int source : network.sources_of(other))
        if (source >= 0 && reached[source] && !reached[other]) changed = reached[other] = true;
    }
  }
  std::size_t count = 0;
  for (std::size_t other = 0; other < reached.size(); ++other) count += reached[other] && plan.layers[other].half_rows;
  return count;
}

/// Runs the engine in `mode` and compares. Adds to `totals` how many decisions fell differently in float64.
inline void check_gradient(const Case& test, EngineMode mode, int workers, Totals& totals,
                           EnginePrecision precision = EnginePrecision::fp32, int bptt_steps = 0) {
  WorkerTeam team(workers, false);
  Plan plan = busy_plan(test.network, mode, workers, precision, bptt_steps);
  Engine engine(test.network, plan, team);
  set_up(engine, test);
  const auto loss = make_readout_loss(test.loss, test.network);
  Parameters gradient;
  const BatchResult result = engine.gradient(test.batch, *loss, gradient);

  std::vector<ForcedDecisions> forced = decisions_of(engine);
  if (bptt_steps > 0) {  // it shows the last chunk alone; without chunks it decides the same (truncation_test.cpp)
    plan.bptt_steps = 0;
    Engine whole(test.network, plan, team);
    set_up(whole, test);
    Parameters ignored;
    whole.gradient(test.batch, *loss, ignored);
    forced = decisions_of(whole);
  }
  std::vector<std::vector<int>> max_steps;
  const int classes = test.network.outputs();
  if (!test.network.layers.back().spiking()) {
    const LayerRecord record = engine.record(test.batch, static_cast<int>(test.network.layers.size()) - 1, false, true);
    for (int s = 0; s < test.batch.samples; ++s) {
      max_steps.push_back(
          find_max_steps(record.membrane.data() + static_cast<std::size_t>(s) * test.batch.steps * classes,
                         test.batch.steps, classes, classes));
    }
  }
  const Parameters parameters = as_read(plan, test.parameters);
  const auto exact =
      reference_step<double>(test.network, parameters, test.batch, reference_loss<double>(test, max_steps), forced,
                             test.window_low, kDropout, bptt_steps);
  const auto single =
      reference_step<float>(test.network, parameters, test.batch, reference_loss<float>(test, max_steps), forced,
                            test.window_low, kDropout, bptt_steps);
  EXPECT_NEAR(result.loss, exact.loss, 1e-5 * std::max(1.0, std::fabs(exact.loss)));
  EXPECT_NEAR(result.regulariser, exact.regulariser, 1e-6 * std::max(1.0, exact.regulariser));
  // A decision may only differ where the membrane is at the edge, to rounding.
  EXPECT_LT(exact.farthest_difference, 1e-4);
  totals.differing += exact.differing_decisions;
  for (std::size_t l = 0; l < test.network.layers.size(); ++l) {
    if (test.network.layers[l].spiking()) totals.decisions += test.batch.rows() * test.network.layers[l].size;
    const std::string& name = test.network.layers[l].name;
    const std::size_t half_layers = half_layers_above(test.network, plan, l);
    expect_close(name + ".weight", half_layers, gradient.layers[l].weight, single.weight_gradient[l],
                 exact.weight_gradient[l]);
    if (test.network.layers[l].recurrent) {
      expect_close(name + ".recurrent_weight", half_layers, gradient.layers[l].recurrent_weight,
                   single.recurrent_weight_gradient[l], exact.recurrent_weight_gradient[l]);
    }
    for (const auto& [parameter, exact_gradient] : exact.neuron_gradient[l]) {
      expect_close(name + "." + std::string(name_of(kind_of(parameter))), half_layers, gradient.layers[l].of(parameter),
                   single.neuron_gradient[l].at(parameter), exact_gradient);
    }
    if (test.network.layers[l].bias)
      expect_close(name + ".bias", half_layers, gradient.layers[l].bias, single.bias_gradient[l],
                   exact.bias_gradient[l]);
  }
}

}  // namespace spikeloom::testing
