// The command line: understands it, runs a verb, and turns whatever leaves it into one line on stderr and an exit code.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>

#include <spikeloom/error.hpp>
#include "exit_code.hpp"
#include "network/settings.hpp"
#include "output.hpp"
#include "verbs.hpp"

namespace spikeloom {
namespace {

ExitCode fail(ExitCode code, const std::string& text) {
  fmt::print(stderr, "spikeloom: error: {}\n", one_line(text));
  return code;
}

ExitCode fail_of_system(const std::system_error& error) {
  const std::error_condition condition = error.code().default_error_condition();
  const bool resource = condition == std::errc::no_space_on_device || condition == std::errc::not_enough_memory ||
                        condition == std::errc::too_many_files_open ||
                        condition == std::errc::resource_unavailable_try_again;
  return fail(resource ? ExitCode::resource : ExitCode::user, error.what());
}

ExitCode run(const Action& action) {
  try {
    action();
    finish_output();
    return ExitCode::done;
  } catch (const UserError& error) {
    return fail(ExitCode::user, error.what());
  } catch (const NumericalError& error) {
    return fail(ExitCode::numerical, error.what());
  } catch (const ResourceError& error) {
    return fail(ExitCode::resource, error.what());
  } catch (const Interrupted& stop) {
    fmt::print(stderr, "spikeloom: {}\n", one_line(stop.what()));
    return ExitCode::interrupted;
  } catch (const std::bad_alloc&) {
    return fail(ExitCode::resource, "out of memory: try a smaller training.batch_size or fewer data.steps");
  } catch (const std::filesystem::filesystem_error& error) {
    return fail_of_system(error);
  } catch (const std::system_error& error) {
    return fail_of_system(error);
  } catch (const std::exception& error) {
    return fail(ExitCode::bug, fmt::format("{} (this is a bug of spikeloom: please report it)", error.what()));
  }
}

std::string unknown(const CLI::App& app, const std::string& verb) {
  std::vector<std::string> names;
  for (const CLI::App* known : app.get_subcommands(nullptr)) names.push_back(known->get_name());
  const auto nearer = [&](const std::string& a, const std::string& b) {
    return edit_distance(a, verb) < edit_distance(b, verb);
  };
  return fmt::format("there is no verb {}; did you mean {}? verbs: {}", verb,
                     *std::min_element(names.begin(), names.end(), nearer), fmt::join(names, ", "));
}

/// Help, --version and --help-settings end the parsing too, and are no errors.
ExitCode end_of_parsing(CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return run([&] { app.exit(error); });
  const CLI::App* at = &app;
  std::string verb = "spikeloom";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    verb += " " + at->get_name();
  }
  const std::vector<std::string> left = at->remaining();
  const bool unknown_verb = at->get_require_subcommand_min() > 0 && !left.empty() && !left.front().starts_with('-');
  return fail(ExitCode::user,
              fmt::format("{} ({} --help tells more)", unknown_verb ? unknown(*at, left.front()) : error.what(), verb));
}

}  // namespace
}  // namespace spikeloom

int main(int argc, char** argv) {
  using namespace spikeloom;
  // A closed pipe is then a failed write that output.cpp sees, not a death in the middle of saving.
  std::signal(SIGPIPE, SIG_IGN);

  CLI::App app{"Trains spiking neural networks with exact, sparse backpropagation through time.", "spikeloom"};
  app.set_version_flag("--version", "spikeloom " SPIKELOOM_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 2 the input is wrong, 3 NaN or infinity, 4 out of memory or disk, 130 interrupted after "
      "saving.\n"
      "spikeloom VERB --help tells more; docs/reference holds the details.");
  Action action;
  add_train(app, action);
  add_eval(app, action);
  add_info(app, action);
  add_data(app, action);
  add_bench(app, action);
  add_plan(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return static_cast<int>(end_of_parsing(app, error));
  }
  return static_cast<int>(run(action));
}
