#include "smd/cli/run_argument.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "smd/base/nearest.h"
#include "smd/picture/text_width.h"
#include "smd/storage/location.h"
#include "smd/trial/run_folder.h"

namespace smd::cli {
namespace {

namespace fs = std::filesystem;

constexpr RunSearch kSearch{};

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The run that a path inside of one belongs to; "" if none does.
std::string run_above(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  for (fs::path at = whole; at.has_relative_path(); at = at.parent_path()) {
    const fs::path name = at.filename();
    const bool is_part = name == "index" || name == "events" || name == "collections";
    if ((is_part || at == whole) && is_run_folder(at.parent_path()))
      return at.parent_path().string();
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
  for (const fs::path& entry : entries_of(folder, kSearch.most_entries)) {
    if (is_folder(entry)) names.push_back(entry.filename().string());
  }
  return {ErrorCode::not_found,
          printable(fmt::format("There is no directory '{}'.{}", path.string(),
                                did_you_mean(path.filename().string(), names)))};
}

// What is to be said of a path where nothing is yet; "" if something is.
std::string absence(const fs::path& path) {
  std::error_code error;
  const auto type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) {
    return fmt::format("{} Waiting for it.", missing(path).message);
  }
  if (type == fs::file_type::directory && fs::is_empty(path, error) && !error) {
    return printable(
        fmt::format("The directory '{}' is empty. Waiting for the run to begin.", path.string()));
  }
  return "";
}

}  // namespace

std::string expanded(std::string_view argument) {
  if (storage::is_uri(argument)) return std::string(argument);
  std::string path = storage::with_home(std::string(argument));
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Result<std::shared_ptr<storage::Storage>> open_run(std::string_view argument,
                                                   const storage::LocalOptions& options) {
  if (storage::is_uri(argument)) return storage::open_storage(argument);
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
  if (is_run_folder(path)) return storage::local_storage(path.string(), options);

  fs::directory_iterator(path, error);
  if (error) {
    return Error{ErrorCode::io, printable(fmt::format("'{}' cannot be read: {}.", path.string(),
                                                      error.message()))};
  }
  const auto entries = entries_of(path, kSearch.most_entries);
  if (entries.empty()) return wrong(fmt::format("The directory '{}' is empty.", path.string()));
  if (const std::string above = run_above(path); !above.empty()) {
    return wrong(
        fmt::format("'{}' is only a part of a run. Did you mean '{}'?", path.string(), above));
  }
  if (const auto below = find_runs_below(path, kSearch); !below.empty()) {
    return wrong(fmt::format("'{}' is not a run, but holds {}: {}{}.", path.string(),
                             below.size() == 1 ? "one" : "some", fmt::join(below, ", "),
                             below.size() == kSearch.most_runs ? ", …" : ""));
  }
  return wrong(fmt::format(
      "'{}' is not a run: it has none of index/, events/, v2/log/ and collections/; {}.",
      path.string(), guess(entries)));
}

Result<std::shared_ptr<storage::Storage>> open_future_run(std::string_view argument,
                                                          std::string& note) {
  if (argument.empty() || storage::is_uri(argument)) return open_run(argument);
  const std::string path = expanded(argument);
  const std::string absent = absence(path);
  if (absent.empty()) return open_run(argument);
  note = absent;
  return storage::local_storage(path);
}

std::string waiting_note(std::string_view argument) {
  if (argument.empty() || storage::is_uri(argument)) return "";
  const fs::path path = expanded(argument);
  if (std::string absent = absence(path); !absent.empty()) return absent;
  if (is_run_folder(path) || !find_runs_below(path, {.most_runs = 1}).empty()) return "";
  return printable(fmt::format("There is no run in '{}' yet. Waiting for one.", path.string()));
}

Result<std::unique_ptr<Trial>> open_trial(std::string_view argument) {
  SMD_TRY(auto storage, open_run(argument));
  SMD_TRY(auto trial, Trial::open(std::move(storage), {.end_delay_secs = 0}));
  SMD_RETURN_IF_ERROR(trial->refresh());
  return trial;
}

}  // namespace smd::cli
