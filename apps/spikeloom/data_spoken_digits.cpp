// spikeloom data spoken-digits: makes the built-in data set.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "console.hpp"
#include "data/encode/spoken_digits.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

struct Options {
  std::string out;
  SpokenDigitsOptions make;
  bool json = false;
};

void make(const Options& options) {
  SpokenDigitsOptions how = options.make;
  how.out = options.out;
  {
    ConsoleListener console;
    make_spoken_digits(how, console);
  }
  const std::string train = (how.out / "train.h5").string();
  const std::string test = (how.out / "test.h5").string();
  if (options.json) {
    print_json({{"train", train},
                {"train_samples", how.train},
                {"test", test},
                {"test_samples", how.test},
                {"seed", how.seed}});
  } else {
    print_table({{"training set", fmt::format("{} ({} samples)", train, how.train)},
                 {"test set", fmt::format("{} ({} samples)", test, how.test)}});
  }
}

}  // namespace

void add_data_spoken_digits(CLI::App& data, Action& action) {
  const auto options = std::make_shared<Options>();
  SpokenDigitsOptions& make_options = options->make;
  const CLI::Range samples(20, 1'000'000);
  CLI::App* verb = data.add_subcommand("spoken-digits",
                                       "Make spoken digits as spikes: English and German, 20 classes, 700 channels");
  verb->add_option("--out", options->out, "Folder for train.h5 and test.h5; created if need be")
      ->required()
      ->type_name("DIR");
  verb->add_option("--train", make_options.train, "Training samples")
      ->check(samples)
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--test", make_options.test, "Test samples, of voices that do not occur in training")
      ->check(samples)
      ->capture_default_str()
      ->type_name("N");
  verb->add_option("--seed", make_options.seed, "Seed of voices, noise and nerve")
      ->capture_default_str()
      ->type_name("S");
  verb->add_option("--threads", make_options.threads, "Threads; 0: all cores")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str()
      ->type_name("N");
  verb->add_flag("--json", options->json, "Print one JSON object on stdout");
  verb->footer("The same seed and the same espeak-ng give the same bytes.");
  verb->callback([=, &action] { action = [options] { make(*options); }; });
}

}  // namespace spikeloom
