// What goes to stdout: results, as text or as one JSON object. Progress and messages go to stderr (console.hpp).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace spikeloom {

/// Prints one object on one line. NaN and infinity become null, as JSON has no word for them.
void print_json(const nlohmann::ordered_json& object);

/// Prints "name   value" lines, values aligned.
void print_table(const std::vector<std::pair<std::string, std::string>>& rows);

void print_text(std::string_view text);

/// Flushes stdout. Throws ResourceError if something could not be written (a full disk); a reader that went away is no
/// error.
void finish_output();

std::string percent(double fraction);         // "97.3 %"
std::string duration(double seconds);         // "3 min 12 s"
std::string one_line(std::string_view text);  // line breaks become spaces

}  // namespace spikeloom
