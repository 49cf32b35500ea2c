#include "smd/cli/run_argument.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <vector>

#include "smd/base/nearest.h"
#include "smd/cli/text_width.h"
#include "smd/format/file_name.h"

namespace smd::cli {
namespace {

namespace fs = std::filesystem;

// How far a directory that is no run is searched for one.
constexpr int kMostDepth = 3;
constexpr int kMostEntries = 5000;
constexpr size_t kMostNames = 5;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool is_run(const fs::path& path) {
  return is_folder(path / "index") || is_folder(path / "events") || is_folder(path / "v2") ||
         is_folder(path / "collections" / "000000000") ||
         // What an upload left behind may be nothing but this.
         is_file(path / format::kEndMarker);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    out.push_back(it->path());
    if (out.size() >= kMostEntries) break;
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Runs below a directory, the nearest first; links are not followed.
std::vector<std::string> runs_below(const fs::path& root) {
  std::vector<std::string> found;
  std::deque<std::pair<fs::path, int>> pending = {{root, 0}};
  int seen = 0;
  while (!pending.empty() && found.size() < kMostNames) {
    const auto [folder, depth] = pending.front();
    pending.pop_front();
    for (const fs::path& entry : entries_of(folder)) {
      std::error_code error;
      if (++seen > kMostEntries) return found;
      if (!is_folder(entry) || fs::is_symlink(entry, error)) continue;
      if (is_run(entry)) {
        found.push_back(entry.string());
        if (found.size() == kMostNames) return found;
      } else if (depth + 1 < kMostDepth) {
        pending.emplace_back(entry, depth + 1);
      }
    }
  }
  return found;
}

// The run that a path inside of one belongs to; "" if none does.
std::string run_above(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  for (fs::path at = whole; at.has_relative_path(); at = at.parent_path()) {
    const fs::path name = at.filename();
    const bool is_part = name == "index" || name == "events" || name == "collections";
    if ((is_part || at == whole) && is_run(at.parent_path())) return at.parent_path().string();
  }
  return "";
}

// What a directory seems to be instead of a run.
std::string guess(const std::vector<fs::path>& entries) {
  const auto any = [&](auto&& test) { return std::any_of(entries.begin(), entries.end(), test); };
  const auto ends = [](const fs::path& path, std::initializer_list<std::string_view> suffixes) {
    const std::string name = path.filename().string();
    return std::any_of(suffixes.begin(), suffixes.end(),
                       [&](std::string_view suffix) { return name.ends_with(suffix); });
  };
  if (any([](const fs::path& path) {
        return path.filename().string().find("tfevents") != std::string::npos;
      })) {
    return "it looks like a TensorBoard log";
  }
  if (any([&](const fs::path& path) {
        return ends(path, {".pt", ".pth", ".ckpt", ".safetensors", ".h5", ".params"}) ||
               path.filename() == "checkpoint";
      })) {
    return "it looks like a folder of checkpoints";
  }
  if (any([&](const fs::path& path) {
        return path.filename() == ".git" || ends(path, {".py", ".ipynb", ".cpp"});
      })) {
    return "it looks like a folder of source code";
  }
  std::vector<std::string> names;
  for (const fs::path& path : entries) {
    if (names.size() == 3) break;
    names.push_back("'" + path.filename().string() + "'");
  }
  return fmt::format("it holds {}{}", fmt::join(names, ", "), entries.size() > 3 ? ", …" : "");
}

Error wrong(std::string message) { return {ErrorCode::invalid_argument, printable(message)}; }

Error missing(const fs::path& path) {
  fs::path folder = path.parent_path();
  if (folder.empty()) folder = ".";
  if (!is_folder(folder)) {
    return {ErrorCode::not_found,
            printable(fmt::format("There is no directory '{}', and none above it of the name '{}'.",
                                  path.string(), folder.string()))};
  }
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(folder)) {
    if (is_folder(entry)) names.push_back(entry.filename().string());
  }
  return {ErrorCode::not_found,
          printable(fmt::format("There is no directory '{}'.{}", path.string(),
                                did_you_mean(path.filename().string(), names)))};
}

std::string expanded(std::string_view argument) {
  std::string path(argument);
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe)
  if (home != nullptr && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

Result<std::shared_ptr<storage::Storage>> open_run(std::string_view argument,
                                                   const storage::LocalOptions& options) {
  if (argument.find("://") != std::string_view::npos) return storage::open_storage(argument);
  if (argument.empty()) return wrong("The path of the run is empty.");
  const fs::path path = expanded(argument);
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) return missing(path);
  if (status.type() == fs::file_type::none) {
    return Error{ErrorCode::io, printable(fmt::format("'{}' cannot be opened: {}.", path.string(),
                                                      error.message()))};
  }
  if (!fs::is_directory(status)) {
    const std::string above = run_above(path);
    return wrong(fmt::format("'{}' is a file, but a run is a directory.{}", path.string(),
                             above.empty() ? "" : fmt::format(" Did you mean '{}'?", above)));
  }
  if (is_run(path)) return storage::local_storage(path.string(), options);

  fs::directory_iterator(path, error);
  if (error) {
    return Error{ErrorCode::io, printable(fmt::format("'{}' cannot be read: {}.", path.string(),
                                                      error.message()))};
  }
  const auto entries = entries_of(path);
  if (entries.empty()) return wrong(fmt::format("The directory '{}' is empty.", path.string()));
  if (const std::string above = run_above(path); !above.empty()) {
    return wrong(
        fmt::format("'{}' is only a part of a run. Did you mean '{}'?", path.string(), above));
  }
  if (const auto below = runs_below(path); !below.empty()) {
    return wrong(fmt::format("'{}' is not a run, but holds {}: {}{}.", path.string(),
                             below.size() == 1 ? "one" : "some", fmt::join(below, ", "),
                             below.size() == kMostNames ? ", …" : ""));
  }
  return wrong(fmt::format(
      "'{}' is not a run: it has none of index/, events/, v2/log/ and collections/; {}.",
      path.string(), guess(entries)));
}

Result<std::shared_ptr<storage::Storage>> open_future_run(std::string_view argument,
                                                          std::string& note) {
  if (argument.empty() || argument.find("://") != std::string_view::npos) return open_run(argument);
  const fs::path path = expanded(argument);
  std::error_code error;
  const auto type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) {
    note = fmt::format("{} Waiting for it.", missing(path).message);
  } else if (type == fs::file_type::directory && fs::is_empty(path, error) && !error) {
    note = printable(
        fmt::format("The directory '{}' is empty. Waiting for the run to begin.", path.string()));
  } else {
    return open_run(argument);
  }
  return storage::local_storage(path.string());
}

Result<std::unique_ptr<Trial>> open_trial(std::string_view argument) {
  SMD_TRY(auto storage, open_run(argument));
  SMD_TRY(auto trial, Trial::open(std::move(storage), {.end_delay_secs = 0}));
  SMD_RETURN_IF_ERROR(trial->refresh());
  return trial;
}

}  // namespace smd::cli
