#include "io/state_text.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <string_view>

#include <spikeloom/error.hpp>

namespace spikeloom {
namespace {

/// Visits every number of a state under its name: said once for both directions.
template <class State, class Visitor>
void visit_state(State& state, Visitor& visit) {
  visit("epoch", state.epoch);
  visit("position", state.position);
  visit("step", state.step);
  visit("last_loss", state.last_loss);
  visit("last_accuracy", state.last_accuracy);
  visit("seconds", state.seconds);
  visit("samples", state.samples);
  visit("plateau.best", state.plateau.best);
  visit("plateau.epochs_without_gain", state.plateau.epochs_without_gain);
  visit("plateau.scale", state.plateau.scale);
  visit("activity.effort", state.activity.effort);
  visit("activity.error", state.activity.error);
  visit("activity.window_reach", state.activity.window_reach);
  auto& totals = state.totals;
  visit("totals.samples", totals.samples);
  visit("totals.batches", totals.batches);
  visit("totals.correct", totals.correct);
  visit("totals.undecided", totals.undecided);
  visit("totals.loss", totals.loss);
  visit("totals.regulariser", totals.regulariser);
  visit("totals.input_activity", totals.input_activity);
  visit("totals.activity", totals.activity);
  visit("totals.active_fraction", totals.active_fraction);
  visit("totals.dense_forward", totals.dense_forward);
  visit("totals.dense_backward", totals.dense_backward);
  visit("totals.budget_spikes", totals.budget_spikes);
  visit("totals.dropped_spikes", totals.dropped_spikes);
  visit("totals.budget_gradients", totals.budget_gradients);
  visit("totals.dropped_gradients", totals.dropped_gradients);
  visit("totals.saved_state_bytes", totals.saved_state_bytes);
  visit("totals.forward_seconds", totals.forward_seconds);
  visit("totals.backward_seconds", totals.backward_seconds);
  visit("totals.update_seconds", totals.update_seconds);
  visit("totals.data_seconds", totals.data_seconds);
  visit("totals.seconds", totals.seconds);
}

template <class Best, class Visitor>
void visit_best(Best& best, Visitor& visit) {
  visit("best.epoch", best.epoch);
  visit("best.accuracy", best.accuracy);
  visit("best.loss", best.loss);
}

constexpr const char* kFirstLoss = "first_loss";

struct Writer {
  Texts& texts;
  void operator()(const char* name, std::integral auto value) { texts[name] = fmt::format("{}", value); }
  void operator()(const char* name, double value) { texts[name] = fmt::format("{:a}", value); }
  void operator()(const char* name, const std::vector<double>& values) {
    std::string& text = texts[name];
    for (const double value : values) text += fmt::format("{}{:a}", text.empty() ? "" : " ", value);
  }
};

struct Reader {
  const Texts& texts;
  std::size_t layers;
  const std::string& where;

  const std::string& text_of(const char* name) const {
    const auto found = texts.find(name);
    if (found == texts.end())
      throw UserError(fmt::format("{}: __metadata__ has no \"{}\"; it is no checkpoint to resume from", where, name));
    return found->second;
  }
  [[noreturn]] void refuse(const char* name, const char* wanted) const {
    throw UserError(fmt::format("{}: __metadata__, \"{}\": \"{}\" is {}", where, name, text_of(name), wanted));
  }
  double number(const char* name, std::string_view text) const {
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    if (text == "inf")
      return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    double value = 0.0;
    if (!text.starts_with("0x")) refuse(name, "no hexadecimal float");
    text.remove_prefix(2);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
    if (error != std::errc() || end != text.data() + text.size()) refuse(name, "no hexadecimal float");
    return negative ? -value : value;
  }
  template <std::integral Whole>
  void operator()(const char* name, Whole& value) const {
    const std::string& text = text_of(name);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < 0) refuse(name, "no whole number from 0");
  }
  void operator()(const char* name, double& value) const { value = number(name, text_of(name)); }
  void operator()(const char* name, std::vector<double>& values) const {
    std::string_view text = text_of(name);
    values.clear();
    while (!text.empty()) {
      const std::size_t end = text.find(' ');
      values.push_back(number(name, text.substr(0, end)));
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    if (values.size() != layers) refuse(name, "not one number for each layer");
  }
};

}  // namespace

Texts state_to_texts(const TrainingState& state) {
  Texts texts;
  Writer writer{texts};
  visit_state(state, writer);
  if (state.best) visit_best(*state.best, writer);
  if (state.first_loss) writer(kFirstLoss, *state.first_loss);
  return texts;
}

TrainingState state_from_texts(const Texts& texts, std::size_t layers, const std::string& where) {
  TrainingState state;
  const Reader reader{texts, layers, where};
  visit_state(state, reader);
  if (texts.contains("best.epoch")) visit_best(state.best.emplace(), reader);
  if (texts.contains(kFirstLoss)) reader(kFirstLoss, state.first_loss.emplace());
  return state;
}

}  // namespace spikeloom
