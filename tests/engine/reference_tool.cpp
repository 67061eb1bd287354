// Shows the float64 reference and the sparse engine to tests in other languages; tests/python/reference.py says how it
// is called.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

#include <spikeloom/configuration.hpp>
#include <spikeloom/error.hpp>
#include "engine/engine.hpp"
#include "engine/reference.hpp"
#include "io/safetensors.hpp"
#include "train/loss_formulas.hpp"
#include "train/losses.hpp"
#include "train/optimizer.hpp"

namespace spikeloom {
namespace {

using Shape = std::vector<std::uint64_t>;

const TensorInfo& tensor(const SafetensorsReader& file, const std::string& name) {
  const TensorInfo* info = file.find(name);
  if (!info) throw UserError(name + " is missing");
  return *info;
}

std::vector<float> read_all(const SafetensorsReader& file, const std::string& name) {
  return file.read(name, tensor(file, name).shape);
}

Parameters read_parameters(const NetworkSpec& network, const SafetensorsReader& file) {
  Parameters parameters;
  for (const LayerSpec& layer : network.layers) {
    LayerParameters& out = parameters.layers.emplace_back();
    out.weight = read_all(file, layer.name + ".weight");
    if (layer.recurrent) out.recurrent_weight = read_all(file, layer.name + ".recurrent_weight");
    if (layer.bias) out.bias = read_all(file, layer.name + ".bias");
    for (const NeuronParameter parameter : kNeuronParameters) {
      const std::string name = fmt::format("{}.{}", layer.name, name_of(kind_of(parameter)));
      if (file.find(name)) out.of(parameter) = read_all(file, name);
    }
  }
  return parameters;
}

SpikeBatch read_batch(const SafetensorsReader& file) {
  const Shape shape = tensor(file, "input").shape;
  const std::vector<float> dense = read_all(file, "input");
  SpikeBatch batch;
  batch.samples = static_cast<int>(shape.at(0));
  batch.steps = static_cast<int>(shape.at(1));
  batch.neurons = static_cast<int>(shape.at(2));
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    for (int id = 0; id < batch.neurons; ++id) {
      if (dense[row * batch.neurons + id] != 0.0f) batch.ids.push_back(static_cast<std::uint32_t>(id));
    }
    batch.offsets.push_back(static_cast<std::uint32_t>(batch.ids.size()));
  }
  const TensorInfo& labels = tensor(file, "labels");
  std::ifstream in(file.path(), std::ios::binary);
  in.seekg(static_cast<std::streamoff>(labels.begin));
  for (int sample = 0; sample < batch.samples; ++sample) {
    std::int64_t label = 0;
    in.read(reinterpret_cast<char*>(&label), sizeof label);
    batch.labels.push_back(static_cast<int>(label));
  }
  return batch;
}

/// float64 tensors, which training never writes.
void write_doubles(const std::string& path,
                   const std::vector<std::tuple<std::string, Shape, std::vector<double>>>& tensors) {
  nlohmann::ordered_json header;
  std::string bytes;
  for (const auto& [name, shape, values] : tensors) {
    const std::size_t begin = bytes.size();
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
    header[name] = {{"dtype", "F64"}, {"shape", shape}, {"data_offsets", {begin, bytes.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << text << bytes;
}

void write_gradients(const Configuration& configuration, const Parameters& parameters, const SpikeBatch& batch,
                     const std::string& path) {
  const NetworkSpec& network = configuration.network;
  const int classes = network.outputs();
  const ReferenceLoss<double> loss = [&](int, const double* output, double* gradient, int label, double scale) {
    if (!network.layers.back().spiking()) {
      return MembraneLoss<double>()
          .evaluate(configuration.loss, output, gradient, batch.steps, classes, classes, label, scale)
          .loss;
    }
    const std::vector<std::uint32_t> counts(output, output + classes);
    return count_loss<double>(configuration.loss, counts.data(), gradient, batch.steps, classes, label, scale).loss;
  };
  const auto result =
      reference_step<double>(network, parameters, batch, loss, {}, std::nan(""), {}, configuration.training.bptt_steps);
  std::vector<std::tuple<std::string, Shape, std::vector<double>>> tensors;
  tensors.emplace_back("loss", Shape{1}, std::vector<double>{result.loss / batch.samples + result.regulariser});
  for (std::size_t l = 0; l < network.layers.size(); ++l) {
    const LayerSpec& layer = network.layers[l];
    const Shape shape{static_cast<std::uint64_t>(layer.size), static_cast<std::uint64_t>(network.inputs_of(l))};
    tensors.emplace_back("grad." + layer.name + ".weight", shape, result.weight_gradient[l]);
    if (layer.recurrent) {
      tensors.emplace_back("grad." + layer.name + ".recurrent_weight", Shape{shape[0], shape[0]},
                           result.recurrent_weight_gradient[l]);
    }
    if (layer.bias) tensors.emplace_back("grad." + layer.name + ".bias", Shape{shape[0]}, result.bias_gradient[l]);
    for (const auto& [parameter, gradient] : result.neuron_gradient[l])
      tensors.emplace_back(fmt::format("grad.{}.{}", layer.name, name_of(kind_of(parameter))), Shape{shape[0]},
                           gradient);
  }
  write_doubles(path, tensors);
}

void print_training_losses(const Configuration& configuration, const Parameters& parameters, const SpikeBatch& batch,
                           int steps) {
  WorkerTeam team(2, false);
  Engine engine(
      configuration.network,
      make_plan(configuration.network, EngineMode::sparse, 2, EnginePrecision::fp32, configuration.training.bptt_steps),
      team);
  engine.import_parameters(parameters);
  Optimizer optimizer(configuration.optimizer, engine);
  const auto loss = make_readout_loss(configuration.loss, configuration.network);
  nlohmann::json losses = nlohmann::json::array();
  for (int step = 0; step < steps; ++step) {
    optimizer.begin_step(configuration.optimizer.learning_rate);
    const BatchResult result = engine.train_step(batch, *loss, optimizer, configuration.optimizer.gradient_clip);
    losses.push_back(result.loss / batch.samples + result.regulariser);
  }
  fmt::print("{}\n", losses.dump());
}

void run(int argc, char** argv) {
  if (argc != 4 && argc != 5)
    throw UserError("usage: reference_tool CONFIG IN OUT | reference_tool CONFIG IN --train-steps N");
  Configuration configuration = load_configuration(argv[1]);
  const SafetensorsReader file(argv[2]);
  const SpikeBatch batch = read_batch(file);
  configuration.network.channels = batch.neurons;
  const Parameters parameters = read_parameters(configuration.network, file);
  if (argc == 4) {
    write_gradients(configuration, parameters, batch, argv[3]);
  } else {
    print_training_losses(configuration, parameters, batch, std::stoi(argv[4]));
  }
}

}  // namespace
}  // namespace spikeloom

int main(int argc, char** argv) {
  try {
    spikeloom::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "reference_tool: {}\n", error.what());
    return 1;
  }
  return 0;
}
