#include "smd/storage/location.h"

#include <cstdlib>

namespace smd::storage {

bool is_uri(std::string_view location) { return location.find("://") != std::string_view::npos; }

std::string with_home(std::string path) {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home != nullptr && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
  return path;
}

}  // namespace smd::storage
