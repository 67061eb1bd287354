#include "train/measure/kernel_references.hpp"

#include <algorithm>
#include <cmath>

#include "network/scalar_models.hpp"

namespace spikeloom::measure {
namespace {

/// To rounding: sums of some hundred numbers of the size of `scale`.
bool near(double a, double b, double scale) { return std::fabs(a - b) <= 2e-5 * (scale + std::fabs(b)); }

auto of_column(const kernels::TileConstants& c, int column) {
  return scalar::constants_of<scalar::Lif, float>(c, static_cast<std::size_t>(column));
}

}  // namespace

bool forward_is_right(TileCase& tile) {
  // Without fused multiply-add a membrane at the threshold may fall on the other side; the kernels' tests allow for it.
  if (kernels::available_targets().front().starts_with("SS")) return true;
  const int width = tile.layer().width();
  const kernels::TileConstants constants = tile.layer().constants(0);
  const SpikeRows input = tile.input();
  const TileTrace& trace = tile.layer().traces[0];
  std::vector<float> handed_on(width, 0.0f);
  std::size_t entry = 0;
  for (int step = 0; step < kSteps; ++step) {
    const std::size_t end = entry + trace.counts[step];
    for (int column = 0; column < width; ++column) {
      float sum = tile.layer().bias(0)[column];
      for (std::uint32_t e = input.offsets[step]; e < input.offsets[step + 1]; ++e)
        sum += tile.layer().weights(0)[static_cast<std::size_t>(input.ids[e]) * width + column];
      const auto c = of_column(constants, column);
      float state[1] = {handed_on[column]};
      const float membrane = scalar::Lif::integrate(c, sum, state);
      const bool spiked = membrane > c.threshold;
      const bool active = membrane > constants[NeuronConstant::window_low][column] &&
                          membrane <= constants[NeuronConstant::window_high][column];
      scalar::Lif::carry(c, spiked, state);
      handed_on[column] = state[0];
      if (!spiked && !active) continue;
      const int code = column | (spiked ? kernels::kSpiked : 0) | (active ? kernels::kActive : 0);
      if (entry == end || trace.codes[entry++] != code) return false;
    }
    if (entry != end) return false;
  }
  return true;
}

bool delta_is_right(TileCase& tile, const float* rows, float spike_gradient) {
  const int width = tile.layer().width(), sample = tile.context().samples - 1;
  const kernels::TileConstants constants = tile.layer().constants(0);
  const TileTrace& trace = tile.layer().traces[0];
  std::vector<float> delta(width, 0.0f), largest(width, 0.0f);
  std::size_t end = trace.entry_start[sample + 1];
  for (int step = kSteps - 1; step >= 0; --step) {
    std::vector<float> through(width, 0.0f);
    std::vector<bool> spiked(width, false);
    for (const std::size_t begin = end - trace.counts[static_cast<std::size_t>(sample) * kSteps + step]; end > begin;) {
      const std::uint8_t code = trace.codes[--end];
      const int column = code & kernels::kColumnBits;
      spiked[column] = (code & kernels::kSpiked) != 0;
      if (code & kernels::kActive) through[column] = trace.derivatives[end] * spike_gradient;
    }
    for (int column = 0; column < width; ++column) {
      const auto c = of_column(constants, column);
      float later[1] = {delta[column]};
      scalar::Lif::adjoint(c, bool(spiked[column]), through[column], later);
      delta[column] = later[0];
      largest[column] = std::max(largest[column], std::fabs(delta[column]));
      if (!near(rows[step * width + column], c.gain * delta[column], largest[column])) return false;
    }
  }
  return true;
}

bool weight_gradient_is_right(TileCase& tile, const TransposedEvents& events, const float* gradient) {
  const int width = tile.layer().width();
  for (int input = 0; input < tile.layer().inputs(); ++input) {
    for (int column = 0; column < width; ++column) {
      double sum = 0.0;
      for (std::uint32_t e = events.starts[input]; e < events.starts[input + 1]; ++e)
        sum += tile.delta()[static_cast<std::size_t>(events.event_rows[e]) * width + column];
      if (!near(gradient[static_cast<std::size_t>(input) * width + column], sum, 1.0)) return false;
    }
  }
  return true;
}

bool input_gradient_is_right(TileCase& tile, const SpikeLists& active, const float* out) {
  const int width = tile.layer().width();
  for (std::size_t row = 0; row < tile.context().rows(); ++row) {
    for (std::uint32_t e = active.offsets[row]; e < active.offsets[row + 1]; ++e) {
      double sum = 0.0, size = 0.0;
      for (int column = 0; column < width; ++column) {
        const double product = static_cast<double>(tile.delta()[row * width + column]) *
                               tile.layer().weights(0)[static_cast<std::size_t>(active.ids[e]) * width + column];
        sum += product, size += std::fabs(product);
      }
      if (!near(out[e], sum, size)) return false;
    }
  }
  return true;
}

bool adam_is_right(const AdamStep& s, float value, float gradient, float first, float second, float new_value) {
  const double g = gradient;
  const double m = s.beta1 * static_cast<double>(first) + s.one_minus_beta1 * g;
  const double v = s.beta2 * static_cast<double>(second) + s.one_minus_beta2 * g * g;
  const double expected =
      value * static_cast<double>(s.keep) - s.step_size * m / (std::sqrt(v) * s.inverse_root + s.epsilon);
  return near(new_value, expected, std::fabs(value));
}

}  // namespace spikeloom::measure
