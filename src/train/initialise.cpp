#include "train/initialise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace spikeloom {
namespace {

constexpr double kVariance = 0.633;
constexpr std::size_t kRecordedFloats = std::size_t{8} << 20;  // input currents held at a time: 32 MB

class Initialiser {
 public:
  Initialiser(Engine& engine, Parameters& parameters, const SpikeDataset& data, std::span<const std::uint32_t> samples,
              ProgressListener& listener)
      : engine_(engine), parameters_(parameters), data_(data), samples_(samples), listener_(listener) {
    gather_batch(data, samples, batch_);
  }

  void run(const std::vector<bool>& given) {
    const NetworkSpec& network = engine_.network();
    engine_.import_parameters(parameters_);
    for (std::size_t l = 0; l < network.layers.size(); ++l) {
      const LayerSpec& layer = network.layers[l];
      const bool from_data = layer.init == InitKind::rate || layer.init == InitKind::lsuv;
      if (!layer.spiking() || !from_data || (!given.empty() && given[l])) continue;
      listener_.progress("initialising", l, network.layers.size(), layer.name);
      layer_ = static_cast<int>(l);
      start_ = parameters_.layers[l].weight;
      const std::vector<std::uint32_t> received = engine_.count(batch_, layer_).received;
      if (std::all_of(received.begin(), received.end(), [](std::uint32_t spikes) { return spikes == 0; })) {
        listener_.warning(fmt::format(
            "layer {}: no spike reaches it from the {} samples that initialise it; its weights stay as drawn",
            layer.name, samples_.size()));
        continue;
      }
      if (layer.init == InitKind::rate) {
        remove_common_input(received);
        find_rate(layer);
      } else {
        find_variance(layer);
      }
    }
    engine_.import_parameters(parameters_);
    listener_.progress("initialising", network.layers.size(), network.layers.size(), "");
  }

 private:
  void set_scale(double scale) {
    std::vector<float>& weight = parameters_.layers[layer_].weight;
    for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(scale * start_[i]);
    engine_.import_parameters(parameters_);
  }

  double rate_at(double scale) {
    set_scale(scale);
    return engine_.count(batch_, layer_).activity;
  }

  /// start_ -= (start_ . m) m / (m . m) for every neuron, m the mean input pattern.
  void remove_common_input(const std::vector<std::uint32_t>& received) {
    const std::size_t inputs = received.size();
    const std::vector<double> mean(received.begin(), received.end());
    double square = 0.0;
    for (const double m : mean) square += m * m;
    for (std::size_t row = 0; row < start_.size(); row += inputs) {
      double response = 0.0;
      for (std::size_t i = 0; i < inputs; ++i) response += start_[row + i] * mean[i];
      for (std::size_t i = 0; i < inputs; ++i) start_[row + i] -= static_cast<float>(response / square * mean[i]);
    }
  }

  /// Bisection on the logarithm of the scale. The rate need not grow everywhere with it, so the best scale seen is
  /// taken.
  void find_rate(const LayerSpec& layer) {
    const double target = layer.init_rate;
    double best_scale = 1.0;
    double best_rate = -1.0;
    const auto try_scale = [&](double scale) {
      const double rate = rate_at(scale);
      if (best_rate < 0.0 || std::fabs(rate - target) < std::fabs(best_rate - target)) {
        best_rate = rate;
        best_scale = scale;
      }
      return rate;
    };
    double low = 1.0;            // too quiet here
    double high = 1.0;           // too busy here
    constexpr int kWidest = 20;  // factors of 4 either way: a thousand thousand million
    if (try_scale(1.0) < target) {
      for (int i = 0; i < kWidest && try_scale(high *= 4.0) < target; ++i) low = high;
    } else {
      for (int i = 0; i < kWidest && try_scale(low /= 4.0) >= target; ++i) high = low;
    }
    for (int i = 0; i < 24 && std::fabs(best_rate - target) > 0.02 * target; ++i) {
      const double middle = std::sqrt(low * high);
      (try_scale(middle) < target ? low : high) = middle;
    }
    set_scale(best_scale);
    if (std::fabs(best_rate - target) > 0.5 * target) {
      listener_.warning(fmt::format(
          "layer {}: init_rate {} can't be met by scaling its weights; it starts at {:.4g} spikes per neuron and step",
          layer.name, target, best_rate));
    }
  }

  /// The input is linear in the weights, so one scaling does; the second corrects what rounding left.
  void find_variance(const LayerSpec& layer) {
    double scale = 1.0;
    for (int i = 0; i < 2; ++i) {
      const double variance = input_variance(layer);
      if (!(variance > 0.0)) {
        listener_.warning(fmt::format(
            "layer {}: its input does not vary over the samples that initialise it; its weights stay as drawn",
            layer.name));
        return set_scale(1.0);
      }
      scale *= std::sqrt(kVariance / variance);
      set_scale(scale);
    }
  }

  double input_variance(const LayerSpec& layer) {
    const std::size_t per_sample = static_cast<std::size_t>(data_.steps()) * layer.size;
    const std::size_t at_a_time = std::max<std::size_t>(1, kRecordedFloats / per_sample);
    double sum = 0.0;
    double squares = 0.0;
    double count = 0.0;
    SpikeBatch part;
    for (std::size_t done = 0; done < samples_.size(); done += at_a_time) {
      gather_batch(data_, samples_.subspan(done, std::min(at_a_time, samples_.size() - done)), part);
      for (const float current : engine_.record(part, layer_, false, true, true).membrane) {
        sum += current;
        squares += static_cast<double>(current) * current;
        count += 1.0;
      }
    }
    const double mean = sum / count;
    return squares / count - mean * mean;
  }

  Engine& engine_;
  Parameters& parameters_;
  const SpikeDataset& data_;
  std::span<const std::uint32_t> samples_;
  ProgressListener& listener_;
  SpikeBatch batch_;
  int layer_ = 0;
  std::vector<float> start_;  // the layer's weights at scale 1
};

}  // namespace

void initialise_from_data(Engine& engine, Parameters& parameters, const SpikeDataset& data,
                          std::span<const std::uint32_t> samples, const std::vector<bool>& given,
                          ProgressListener& listener) {
  Initialiser(engine, parameters, data, samples, listener).run(given);
}

}  // namespace spikeloom
