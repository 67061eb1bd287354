// spikeloom data encode-images: images in IDX files (MNIST, Fashion-MNIST) as spikes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/encode/encode_images.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

struct Options {
  std::string folder;
  std::string out;
  EncodeImagesOptions encode;
  bool json = false;
};

void encode(const Options& options) {
  EncodeImagesOptions how = options.encode;
  how.folder = options.folder;
  how.out = options.out;
  EncodedImages made;
  run_interruptible([&](ProgressListener& listener) { made = encode_images(how, listener); });
  const std::string train = (how.out / "train.h5").string();
  const std::string test = (how.out / "test.h5").string();
  const int channels = made.width * made.height;
  if (options.json) {
    print_json({{"train", train},
                {"train_samples", made.train},
                {"test", test},
                {"test_samples", made.test},
                {"channels", channels},
                {"steps", how.encoding.steps},
                {"step_ms", static_cast<double>(kImageStepUs) / 1000.0},
                {"seed", how.seed}});
  } else {
    print_table({{"training set", fmt::format("{} ({} samples)", train, made.train)},
                 {"test set", fmt::format("{} ({} samples)", test, made.test)},
                 {"in [data]", fmt::format("channels = {}, steps = {}, step_ms = {:.1f}", channels, how.encoding.steps,
                                           static_cast<double>(kImageStepUs) / 1000.0)}});
  }
}

}  // namespace

void add_data_encode_images(CLI::App& data, Action& action) {
  const auto options = std::make_shared<Options>();
  ImageEncoding& encoding = options->encode.encoding;
  const auto fraction = [](const std::string& text) {
    double value = 0.0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    const bool good = error == std::errc() && stop == end && value > 0.0 && value <= 1.0;
    return good ? std::string() : fmt::format("{} is not allowed: it must be above 0 and up to 1", text);
  };
  const std::map<std::string, ImageEncoder> encoders{
      {"latency", ImageEncoder::latency}, {"latency-log", ImageEncoder::latency_log}, {"rate", ImageEncoder::rate}};
  CLI::App* verb = data.add_subcommand("encode-images", "Turn images in IDX files (MNIST, Fashion-MNIST) into spikes");
  verb->add_option("FOLDER", options->folder,
                   "Folder with train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
                   "t10k-labels-idx1-ubyte, each plain or .gz")
      ->required();
  verb->add_option("--out", options->out, "Folder for train.h5 and test.h5; created if need be")
      ->required()
      ->type_name("DIR");
  verb->add_option("--encoder", encoding.encoder,
                   "latency: a spike per pixel, the brighter the earlier, on a linear or a logarithmic scale; rate: "
                   "spikes at random, the brighter the more (default: latency)")
      ->transform(CLI::CheckedTransformer(encoders).description(""))
      ->type_name("latency|latency-log|rate");
  verb->add_option("--steps", encoding.steps, "Time steps T, of 1 ms each")
      ->check(CLI::Range(1, kMostImageSteps))
      ->capture_default_str()
      ->type_name("T");
  verb->add_option("--floor", encoding.floor, "latency: pixels below this brightness, of 0 to 1, do not spike")
      ->check(fraction)
      ->capture_default_str()
      ->type_name("X");
  verb->add_option("--rate", encoding.rate, "rate: spikes per step of a white pixel")
      ->check(fraction)
      ->capture_default_str()
      ->type_name("X");
  verb->add_option("--seed", options->encode.seed, "Seed of the rate encoder")->capture_default_str()->type_name("S");
  verb->add_option("--threads", options->encode.threads, "Threads; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  verb->footer("A pixel is a channel: y * width + x. The same seed gives the same bytes.");
  verb->callback([=, &action] { action = [options] { encode(*options); }; });
}

}  // namespace spikeloom
