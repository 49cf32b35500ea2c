#include "smd/format/file_name.h"

#include <fmt/format.h>

#include <charconv>

#include "smd/types/worker.h"

namespace smd::format {

std::string event_file_name(Step step, std::string_view worker) {
  return fmt::format("events/{0:012d}/{0:012d}_{1}.tfevents", step, worker);
}

std::string index_file_name(Step step, std::string_view worker) {
  return fmt::format("index/{:09d}/{:012d}_{}.json", step / kFilesPerIndexPrefix, step, worker);
}

std::string collections_file_name(std::string_view worker) {
  return fmt::format("collections/000000000/{}_collections.json", worker);
}

std::optional<IndexFileName> parse_step_file_name(std::string_view path) {
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) {
    path.remove_prefix(slash + 1);
  }
  bool known = false;
  for (std::string_view suffix : {".json", ".csv", ".tfevents"}) {
    if (!path.ends_with(suffix)) continue;
    path.remove_suffix(suffix.size());
    known = true;
    break;
  }
  const size_t underscore = path.find('_');
  if (!known || underscore == std::string_view::npos || underscore + 1 == path.size()) {
    return std::nullopt;
  }
  IndexFileName name;
  const char* end = path.data() + underscore;
  const auto [stop, error] = std::from_chars(path.data(), end, name.step);
  if (error != std::errc() || stop != end || name.step < 0) return std::nullopt;
  name.worker = worker_from_file_name(path.substr(underscore + 1));
  return name;
}

}  // namespace smd::format
