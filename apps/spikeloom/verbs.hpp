// The verbs of the command line, one file each.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace spikeloom {

/// What a verb does after the command line has been understood; its exceptions become exit codes in main.cpp.
using Action = std::function<void()>;

// Each adds a verb to `app` and, if the verb is the one that was given, sets `action`.
void add_train(CLI::App& app, Action& action);
void add_eval(CLI::App& app, Action& action);
void add_info(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);

// Below `bench`.
void add_bench_kernels(CLI::App& bench, Action& action);

// Below `data`.
void add_data_info(CLI::App& data, Action& action);
void add_data_spoken_digits(CLI::App& data, Action& action);
void add_data_encode(CLI::App& data, Action& action);
void add_data_encode_images(CLI::App& data, Action& action);

}  // namespace spikeloom
