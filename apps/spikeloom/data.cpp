// spikeloom data: looks at recordings and makes them.
#include <CLI/CLI.hpp>

#include "verbs.hpp"

namespace spikeloom {

void add_data(CLI::App& app, Action& action) {
  CLI::App* data = app.add_subcommand("data", "Look at data sets, and make them");
  data->require_subcommand(1);
  add_data_info(*data, action);
  add_data_spoken_digits(*data, action);
  add_data_encode(*data, action);
  add_data_encode_images(*data, action);
}

}  // namespace spikeloom
