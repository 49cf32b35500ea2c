#include "smd/trial/run_folder.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "smd/format/file_name.h"

namespace smd {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

bool is_run_folder(const fs::path& path) {
  std::error_code error;
  return is_folder(path / "index") || is_folder(path / "events") || is_folder(path / "v2") ||
         is_folder(path / "collections" / "000000000") ||
         // What an upload left behind may be nothing but this.
         fs::is_regular_file(path / format::kEndMarker, error);
}

std::vector<fs::path> entries_of(const fs::path& folder, int most) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    out.push_back(it->path());
    if (out.size() >= static_cast<size_t>(most)) break;
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> find_runs_below(const fs::path& root, const RunSearch& search) {
  std::vector<std::string> found;
  std::deque<std::pair<fs::path, int>> pending = {{root, 0}};
  int seen = 0;
  while (!pending.empty() && found.size() < search.most_runs) {
    const auto [folder, depth] = pending.front();
    pending.pop_front();
    for (const fs::path& entry : entries_of(folder, search.most_entries)) {
      std::error_code error;
      if (++seen > search.most_entries) return found;
      if (!is_folder(entry) || fs::is_symlink(entry, error)) continue;
      if (is_run_folder(entry)) {
        found.push_back(entry.string());
        if (found.size() == search.most_runs) return found;
      } else if (depth + 1 < search.most_depth) {
        pending.emplace_back(entry, depth + 1);
      }
    }
  }
  return found;
}

}  // namespace smd
