#include "io/run_folder.hpp"

#include <span>

#include "data/durable_file.hpp"

namespace spikeloom {

void write_text(const std::filesystem::path& path, const std::string& text) {
  DurableFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace spikeloom
