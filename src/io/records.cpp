#include "io/records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include <spikeloom/error.hpp>

#include "data/durable_file.hpp"

namespace spikeloom {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

/// A text file written in large pieces, whole or not at all.
class TextFile {
 public:
  explicit TextFile(const std::filesystem::path& path) : file_(path) {}

  template <class... Values>
  void line(const char* format, const Values&... values) {
    fmt::format_to(std::back_inserter(text_), fmt::runtime(format), values...);
    if (text_.size() >= kBuffer) flush();
  }
  void commit() {
    flush();
    file_.commit();
  }

 private:
  void flush() {
    file_.write(std::as_bytes(std::span(text_)));
    text_.clear();
  }
  DurableFile file_;
  std::string text_;
};

/// The header of a NumPy file, version 1.0: its length with the ten bytes before it is a multiple of 64.
std::string npy_header(std::size_t samples, int steps, int neurons) {
  std::string fields =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}, {}), }}", samples, steps, neurons);
  constexpr std::size_t kBefore = 10;
  fields.resize((kBefore + fields.size() + 1 + 63) / 64 * 64 - kBefore - 1, ' ');
  fields += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\0';
  header += static_cast<char>(fields.size() & 0xff);
  header += static_cast<char>(fields.size() >> 8);
  return header + fields;
}

std::string layer_names(const NetworkSpec& network) {
  std::vector<std::string> names;
  for (const LayerSpec& layer : network.layers) names.push_back(layer.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Calls `use` with the record of every group of samples and the place of its first sample in the selection.
template <class Use>
void for_each_record(const RecordRequest& request, Engine& engine, const DataSelection& selection,
                     ProgressListener& listener, Use use) {
  const NetworkSpec& network = engine.network();
  const std::size_t floats = static_cast<std::size_t>(network.steps) * network.layers[request.layer].size;
  const std::size_t group = std::clamp<std::size_t>((std::size_t{8} << 20) / floats, 1, 128);  // 32 MB of membranes
  SpikeBatch batch;
  for (std::size_t done = 0; done < selection.samples.size(); done += group) {
    const auto samples = std::span(selection.samples).subspan(done, std::min(group, selection.samples.size() - done));
    gather_batch(*selection.data, samples, batch);
    use(engine.record(batch, request.layer, request.spikes, !request.spikes), done);
    listener.progress("recording", done + samples.size(), selection.samples.size(), network.layers[request.layer].name);
  }
}

}  // namespace

void write_predictions(const std::filesystem::path& path, const DataSelection& selection,
                       const Evaluation& evaluation) {
  TextFile file(path);
  file.line("sample,label,decision,undecided,loss\n");
  for (std::size_t i = 0; i < selection.samples.size(); ++i) {
    const std::uint32_t sample = selection.samples[i];
    file.line("{},{},{},{},{}\n", sample, selection.data->label(sample), evaluation.decisions[i],
              evaluation.undecided_samples[i], evaluation.losses[i]);
  }
  file.commit();
}

RecordRequest parse_record_request(const NetworkSpec& network, const std::string& text) {
  const std::size_t dot = text.rfind('.');
  const std::string name = text.substr(0, dot);
  const std::string what = dot == std::string::npos ? "" : text.substr(dot + 1);
  if (what != "spikes" && what != "membrane") {
    throw UserError(fmt::format("--record {}: allowed: LAYER.spikes or LAYER.membrane, LAYER one of {}", text,
                                layer_names(network)));
  }
  const auto found = std::find_if(network.layers.begin(), network.layers.end(),
                                  [&](const LayerSpec& layer) { return layer.name == name; });
  if (found == network.layers.end())
    throw UserError(fmt::format("--record {}: no layer {}; allowed: {}", text, name, layer_names(network)));
  if (what == "spikes" && !found->spiking())
    throw UserError(fmt::format("--record {}: layer {} does not spike; allowed: {}.membrane", text, name, name));
  return {static_cast<int>(found - network.layers.begin()), what == "spikes"};
}

void write_record(const std::filesystem::path& path, const RecordRequest& request, Engine& engine,
                  const DataSelection& selection, ProgressListener& listener) {
  const NetworkSpec& network = engine.network();
  if (!request.spikes) {
    DurableFile file(path);
    const std::string header = npy_header(selection.samples.size(), network.steps, network.layers[request.layer].size);
    file.write(std::as_bytes(std::span(header)));
    for_each_record(request, engine, selection, listener, [&](const LayerRecord& record, std::size_t) {
      file.write(std::as_bytes(std::span(record.membrane)));
    });
    return file.commit();
  }
  TextFile file(path);
  file.line("sample,step,neuron\n");
  for_each_record(request, engine, selection, listener, [&](const LayerRecord& record, std::size_t first) {
    const SpikeBatch& spikes = record.spikes;
    for (std::size_t row = 0; row < spikes.rows(); ++row) {
      const std::uint32_t sample = selection.samples[first + row / static_cast<std::size_t>(spikes.steps)];
      for (std::uint32_t e = spikes.offsets[row]; e < spikes.offsets[row + 1]; ++e) {
        file.line("{},{},{}\n", sample, row % static_cast<std::size_t>(spikes.steps), spikes.ids[e]);
      }
    }
  });
  file.commit();
}

}  // namespace spikeloom
