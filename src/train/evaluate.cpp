#include "train/evaluate.hpp"

#include <algorithm>
#include <chrono>

namespace spikeloom {

Evaluation evaluate_samples(Engine& engine, const ReadoutLoss& loss, const SpikeDataset& data,
                            std::span<const std::uint32_t> samples, int batch_size, const std::string& work,
                            ProgressListener& listener) {
  const auto start = std::chrono::steady_clock::now();
  const NetworkSpec& network = engine.network();
  const auto outputs = static_cast<std::size_t>(network.outputs());
  Evaluation result;
  result.samples = samples.size();
  result.confusion.assign(outputs, std::vector<std::uint64_t>(outputs, 0));
  result.activity.assign(network.layers.size(), 0.0);
  result.dropped_spikes.assign(network.layers.size(), 0.0);
  std::vector<std::uint64_t> budget_spikes(network.layers.size(), 0);
  if (samples.empty()) return result;
  SpikeBatch batch;
  double correct = 0.0;
  double operations = 0.0;
  for (std::size_t done = 0; done < samples.size();) {
    const std::size_t count = std::min<std::size_t>(batch_size, samples.size() - done);
    gather_batch(data, samples.subspan(done, count), batch);
    const BatchResult part = engine.evaluate(batch, loss);
    const auto weight = static_cast<double>(count);
    correct += part.correct;
    result.undecided += part.undecided;
    result.input_activity += weight * batch.activity();
    for (std::size_t l = 0; l < part.layers.size(); ++l) {
      result.activity[l] += weight * part.layers[l].activity;
      budget_spikes[l] += part.layers[l].budget.spikes;
      result.dropped_spikes[l] += static_cast<double>(part.layers[l].budget.dropped_spikes);
      operations += static_cast<double>(part.layers[l].synaptic_operations);
    }
    for (std::size_t i = 0; i < count; ++i) {
      result.loss += part.losses[i];
      ++result.confusion[batch.labels[i]][part.decisions[i]];
    }
    result.decisions.insert(result.decisions.end(), part.decisions.begin(), part.decisions.end());
    result.losses.insert(result.losses.end(), part.losses.begin(), part.losses.end());
    result.undecided_samples.insert(result.undecided_samples.end(), part.undecided_samples.begin(),
                                    part.undecided_samples.end());
    done += count;
    listener.progress(work, done, samples.size(), "");
  }
  const auto total = static_cast<double>(samples.size());
  result.loss /= total;
  result.accuracy = correct / total;
  result.input_activity /= total;
  for (double& activity : result.activity) activity /= total;
  for (std::size_t l = 0; l < budget_spikes.size(); ++l) {
    if (budget_spikes[l] > 0) result.dropped_spikes[l] /= static_cast<double>(budget_spikes[l]);
  }
  result.synaptic_operations_per_sample = operations / total;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace spikeloom
