#include "train/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <spikeloom/error.hpp>

#include "core/random.hpp"

namespace spikeloom {
namespace {

using Clock = std::chrono::steady_clock;

// A layer outside these, in spikes per neuron and step, is worth a warning.
constexpr double kSilent = 1e-4;
constexpr double kSaturated = 0.5;
constexpr auto kReportEvery = std::chrono::milliseconds(50);

enum Extreme { kNeither, kIsSilent, kIsSaturated };

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

Trainer::Trainer(const Configuration& configuration, const SpikeDataset& data, std::vector<std::uint32_t> samples,
                 Engine& engine, const ReadoutLoss& loss, ProgressListener& listener)
    : configuration_(configuration),
      augmenter_(configuration.augmentation, data, configuration.seed, samples),
      samples_(std::move(samples)),
      engine_(engine),
      loss_(loss),
      listener_(listener),
      optimizer_(configuration.optimizer, engine),
      activity_(engine),
      warned_(configuration.network.layers.size(), kNeither) {
  if (samples_.empty()) throw UserError("data.train: no samples to train on are left; allowed: at least one");
  const TrainingSpec& training = configuration.training;
  const std::size_t of_update = static_cast<std::size_t>(training.batch_size) * training.accumulate;
  const std::size_t updates = (samples_.size() + of_update - 1) / of_update;
  total_steps_ = static_cast<std::int64_t>(updates) * training.epochs;
  if (training.accumulate > 1) sum_.emplace(engine);
  state_.activity = ActivityState(configuration.network.layers.size());
  clear_totals();
}

void Trainer::restore(TrainingState state) {
  state_ = std::move(state);
  optimizer_.set_steps(state_.step);
}

void Trainer::clear_totals() {
  const std::vector<LayerSpec>& layers = configuration_.network.layers;
  state_.totals = EpochTotals{};
  state_.totals.activity.assign(layers.size(), 0.0);
  state_.totals.active_fraction.assign(layers.size(), 0.0);
  state_.totals.dense_forward.assign(layers.size(), 0.0);
  state_.totals.dense_backward.assign(layers.size(), 0.0);
  state_.totals.budget_spikes.assign(layers.size(), 0.0);
  state_.totals.dropped_spikes.assign(layers.size(), 0.0);
  state_.totals.budget_gradients.assign(layers.size(), 0.0);
  state_.totals.dropped_gradients.assign(layers.size(), 0.0);
  for (const LayerSpec& layer : layers) state_.totals.fired.emplace_back(layer.spiking() ? layer.size : 0, 0);
}

double Trainer::learning_rate() const {
  return learning_rate_at(configuration_.optimizer, state_.step, total_steps_, state_.plateau.scale);
}

void Trainer::order_samples() {
  if (order_of_ == state_.epoch) return;
  order_ = RandomStream(configuration_.seed, "shuffle", state_.epoch).permutation(samples_.size());
  for (std::uint32_t& sample : order_) sample = samples_[sample];
  order_of_ = state_.epoch;
}

void Trainer::train_batch() {
  order_samples();
  const TrainingSpec& spec = configuration_.training;
  const auto batch = static_cast<std::size_t>(spec.batch_size);
  const std::size_t of_update = std::min(samples_.size() - state_.position, batch * spec.accumulate);
  activity_.prepare(state_.activity, window_low_at(spec, configuration_.network, state_.step));
  optimizer_.begin_step(learning_rate());
  const double clip = configuration_.optimizer.gradient_clip;

  BatchResult result;  // of the last batch
  std::vector<double> rates(configuration_.network.layers.size(), 0.0);
  for (std::size_t done = 0; done < of_update; done += batch) {
    const std::size_t count = std::min(batch, of_update - done);
    const double share = static_cast<double>(count) / static_cast<double>(of_update);
    if (sum_) sum_->begin_batch(share, done == 0);
    engine_.set_dropout({configuration_.seed, static_cast<std::uint64_t>(state_.step), done});
    result = sum_ ? train_part(count, *sum_, 0.0) : train_part(count, optimizer_, clip);
    for (std::size_t l = 0; l < rates.size(); ++l) rates[l] += share * result.layers[l].activity;
  }
  if (sum_) {
    const Clock::time_point start = Clock::now();
    sum_->finish(optimizer_, clip);
    const double seconds = seconds_between(start, Clock::now());
    state_.totals.update_seconds += seconds;
    state_.totals.seconds += seconds;
    state_.seconds += seconds;
  }
  optimizer_.check(configuration_.network);
  const bool whole = 2 * static_cast<std::size_t>(batch_.samples) >= std::min(batch, samples_.size());
  activity_.observe(rates, result, whole, state_.activity);
  ++state_.step;
  report();
}

/// One batch, from its spikes to what `update` makes of the gradient.
BatchResult Trainer::train_part(std::size_t samples, ParameterUpdate& update, double gradient_clip) {
  const Clock::time_point start = Clock::now();
  augmenter_.gather(std::span(order_).subspan(state_.position, samples), static_cast<std::uint64_t>(state_.epoch),
                    engine_.team(), batch_);
  const Clock::time_point gathered = Clock::now();
  BatchResult result = engine_.train_step(batch_, loss_, update, gradient_clip);
  if (!std::isfinite(result.loss)) {
    throw NumericalError(
        fmt::format("training step {}: the loss is {} (output of layer {}, epoch {}); a smaller "
                    "optimizer.learning_rate or optimizer.gradient_clip may help",
                    state_.step + 1, result.loss, configuration_.network.layers.back().name, state_.epoch + 1));
  }
  if (state_.step == 0 && state_.position == 0) state_.first_loss = result.loss / static_cast<double>(batch_.samples);
  state_.position += samples;
  count(result, batch_.activity(), seconds_between(start, gathered), seconds_between(start, Clock::now()));
  return result;
}

void Trainer::count(const BatchResult& result, double input_activity, double data_seconds, double seconds) {
  EpochTotals& totals = state_.totals;
  const auto samples = static_cast<double>(batch_.samples);
  totals.samples += batch_.samples;
  ++totals.batches;
  totals.correct += result.correct;
  totals.undecided += result.undecided;
  totals.loss += result.loss;
  totals.regulariser += result.regulariser;
  totals.input_activity += samples * input_activity;
  for (std::size_t l = 0; l < result.layers.size(); ++l) {
    const LayerStatistics& layer = result.layers[l];
    totals.activity[l] += samples * layer.activity;
    totals.active_fraction[l] += samples * layer.active_fraction;
    totals.dense_forward[l] += layer.forward_dense;
    totals.dense_backward[l] += layer.backward_dense;
    totals.budget_spikes[l] += static_cast<double>(layer.budget.spikes);
    totals.dropped_spikes[l] += static_cast<double>(layer.budget.dropped_spikes);
    totals.budget_gradients[l] += static_cast<double>(layer.budget.gradients);
    totals.dropped_gradients[l] += static_cast<double>(layer.budget.dropped_gradients);
    for (std::size_t j = 0; j < totals.fired[l].size(); ++j) totals.fired[l][j] |= layer.spike_counts[j] != 0;
  }
  totals.saved_state_bytes = std::max(totals.saved_state_bytes, result.saved_state_bytes);
  totals.forward_seconds += result.forward_seconds;
  totals.backward_seconds += result.backward_seconds;
  totals.update_seconds += result.update_seconds;
  totals.data_seconds += data_seconds;
  totals.seconds += seconds;
  state_.samples += batch_.samples;
  state_.seconds += seconds;
}

void Trainer::report() {
  const Clock::time_point now = Clock::now();
  if (now - last_report_ < kReportEvery && !epoch_finished()) return;
  last_report_ = now;
  const EpochTotals& totals = state_.totals;
  const auto samples = static_cast<double>(totals.samples);
  std::string detail = fmt::format("loss {:.4f}, accuracy {:.1f} %, {:.0f} samples/s, activity", totals.loss / samples,
                                   100.0 * static_cast<double>(totals.correct) / samples, samples / totals.seconds);
  for (std::size_t l = 0; l < totals.activity.size(); ++l) {
    const LayerSpec& layer = configuration_.network.layers[l];
    if (layer.spiking()) detail += fmt::format(" {} {:.4f}", layer.name, totals.activity[l] / samples);
  }
  const std::uint64_t per_epoch = samples_.size();
  const auto epochs = static_cast<std::uint64_t>(configuration_.training.epochs);
  listener_.progress(fmt::format("epoch {}/{}", state_.epoch + 1, epochs),
                     static_cast<std::uint64_t>(state_.epoch) * per_epoch + state_.position, epochs * per_epoch,
                     detail);
}

EpochSummary Trainer::finish_epoch() {
  EpochSummary summary;
  EpochTotals& totals = summary.totals;
  totals = std::move(state_.totals);
  const auto samples = static_cast<double>(totals.samples);
  const auto batches = static_cast<double>(totals.batches);
  summary.epoch = ++state_.epoch;
  summary.loss = state_.last_loss = totals.loss / samples;
  summary.accuracy = state_.last_accuracy = static_cast<double>(totals.correct) / samples;
  summary.regulariser = totals.regulariser / batches;
  // The last batch's, also where the run was resumed after it.
  --state_.step;
  summary.learning_rate = learning_rate();
  ++state_.step;
  summary.samples_per_second = samples / totals.seconds;
  totals.input_activity /= samples;
  for (double& activity : totals.activity) activity /= samples;
  for (double& active : totals.active_fraction) active /= samples;
  for (double& dense : totals.dense_forward) dense /= batches;
  for (double& dense : totals.dense_backward) dense /= batches;
  const auto dropped_of = [](double dropped, double asked) { return asked > 0.0 ? dropped / asked : 0.0; };
  for (std::size_t l = 0; l < configuration_.network.layers.size(); ++l) {
    summary.dropped_spikes.push_back(dropped_of(totals.dropped_spikes[l], totals.budget_spikes[l]));
    summary.dropped_gradients.push_back(dropped_of(totals.dropped_gradients[l], totals.budget_gradients[l]));
  }
  for (const std::vector<std::uint8_t>& fired : totals.fired) {
    summary.never_fired.push_back(static_cast<std::size_t>(std::count(fired.begin(), fired.end(), 0)));
  }
  const double annealed = window_low_at(configuration_.training, configuration_.network, state_.step);
  for (std::size_t l = 0; l < configuration_.network.layers.size(); ++l) {
    const LayerSpec& layer = configuration_.network.layers[l];
    const ActivityState& activity = state_.activity;
    const bool priced = layer.activity_target > 0.0;
    summary.rate_costs.push_back(priced ? rate_cost_of(layer, activity.effort[l], activity.error[l]) : 0.0);
    summary.window_low.push_back(window_low_of(layer, activity.window_reach[l], annealed));
  }
  state_.position = 0;
  clear_totals();
  warn_of_extremes(summary);
  return summary;
}

void Trainer::warn_of_extremes(const EpochSummary& summary) {
  if (!std::isnan(window_low_at(configuration_.training, configuration_.network, state_.step))) return;  // annealing
  for (std::size_t l = 0; l < warned_.size(); ++l) {
    const LayerSpec& layer = configuration_.network.layers[l];
    if (!layer.spiking()) continue;
    const double activity = summary.totals.activity[l];
    const int extreme = activity < kSilent ? kIsSilent : activity > kSaturated ? kIsSaturated : kNeither;
    if (extreme != warned_[l] && extreme == kIsSilent) {
      listener_.warning(
          fmt::format("layer {} is silent: {:.4f} % of its neurons spike in a step (epoch {}); a larger "
                      "init_gain, a lower threshold or training.anneal_window may help",
                      layer.name, 100.0 * activity, summary.epoch));
    }
    if (extreme != warned_[l] && extreme == kIsSaturated) {
      listener_.warning(
          fmt::format("layer {} is saturated: {:.0f} % of its neurons spike in a step (epoch {}); a "
                      "smaller learning rate or rate_upper with rate_upper_weight may help",
                      layer.name, 100.0 * activity, summary.epoch));
    }
    warned_[l] = extreme;
  }
}

void Trainer::judge_epoch(double loss) { state_.plateau = after_epoch(configuration_.optimizer, state_.plateau, loss); }

}  // namespace spikeloom
