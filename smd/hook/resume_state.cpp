#include "smd/hook/resume_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/base/json.h"
#include "smd/hook/named_folder.h"
#include "smd/storage/storage.h"
#include "smd/storage/temporary.h"

namespace smd {
namespace {

constexpr std::string_view kFile = "metadata.json";
constexpr std::string_view kUploaded = "sagemaker-uploaded";
constexpr int64_t kMostSteps = 1'000'000'000'000;  // file names have room for so many

bool is_no_checkpoint(std::string_view name) {
  return name == kFile || name.find(kUploaded) != std::string_view::npos ||
         storage::is_temporary(name);  // not yet
}

Json to_json(const ResumeState& state) {
  Json modes = Json::object();
  for (const auto& [mode, step] : state.mode_steps) modes[std::string(name_of(mode))] = step;
  return {{"training-run", state.training_run},
          {"latest-global-step-saved",
           state.latest_step_saved ? Json(*state.latest_step_saved) : Json(nullptr)},
          {"latest-global-step-seen", state.latest_step_seen},
          {"latest-mode-step", std::move(modes)}};
}

// An entry that another program wrote or changed is used only if its numbers can be true.
Result<ResumeState> from_json(const Json& json, const std::string& path) {
  const auto wrong = [&path](std::string_view what) {
    return Error{ErrorCode::corrupt, fmt::format("An entry {}: {}", what, path)};
  };
  const auto number = [&](const char* key) -> std::optional<int64_t> {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_number_integer()) return std::nullopt;
    return it->get<int64_t>();
  };
  ResumeState state;
  const auto seen = json.is_object() ? number("latest-global-step-seen") : std::nullopt;
  if (!seen || *seen < 0 || *seen >= kMostSteps) {
    return wrong("has no valid 'latest-global-step-seen'");
  }
  state.latest_step_seen = *seen;
  state.latest_step_saved = number("latest-global-step-saved");
  if (state.latest_step_saved &&
      (*state.latest_step_saved < 0 || *state.latest_step_saved > *seen)) {
    return wrong(fmt::format("has the last saved step {} but has only seen step {}",
                             *state.latest_step_saved, *seen));
  }
  state.training_run = std::max<int64_t>(number("training-run").value_or(0), 0);
  if (const auto modes = json.find("latest-mode-step"); modes != json.end() && modes->is_object()) {
    for (const auto& [name, step] : modes->items()) {
      const auto mode = parse_mode(name);
      if (!mode.ok() || !step.is_number_integer()) continue;
      const auto at = step.get<int64_t>();
      if (at < -1 || at > *seen) {
        return wrong(
            fmt::format("has step {} of the mode {} but has only seen step {}", at, name, *seen));
      }
      if (at >= 0) state.mode_steps[*mode] = at;  // -1: chosen, but no step yet
    }
  }
  return state;
}

Result<Json> read_entries(storage::Storage& folder) {
  const std::string path = fmt::format("{}/{}", folder.name(), kFile);
  auto bytes = storage::read_all(folder, kFile);
  if (!bytes.ok()) {
    if (bytes.error().code == ErrorCode::not_found) return Json(Json::array());
    return bytes.error();
  }
  SMD_TRY(Json entries, parse_json(as_text(*bytes), path));
  if (!entries.is_array()) {
    return Error{ErrorCode::corrupt, fmt::format("Expected a list of states: {}", path)};
  }
  return entries;
}

}  // namespace

ResumeFile::ResumeFile(std::string folder)
    : folder_(std::move(folder)), seen_(look()), watch_(folder_) {}

std::vector<ResumeFile::Entry> ResumeFile::look() const {
  std::vector<Entry> entries;
  const auto files = storage::local_storage(folder_)->list("", "");
  if (!files.ok()) return entries;
  for (const auto& file : *files) {
    const std::string_view name = std::string_view(file.path).substr(file.path.rfind('/') + 1);
    if (is_no_checkpoint(name)) continue;
    entries.emplace_back(file.path, file.size_bytes, file.mtime_ns);
  }
  return entries;
}

std::optional<ResumeState> ResumeFile::load(std::vector<std::string>& problems) const {
  const auto entries = read_entries(*storage::local_storage(folder_));
  std::optional<ResumeState> best;
  if (!entries.ok()) {
    problems.push_back(entries.error().message);
    return best;
  }
  for (const Json& entry : *entries) {
    auto state = from_json(entry, fmt::format("{}/{}", folder_, kFile));
    if (!state.ok()) {
      problems.push_back(std::move(state.error().message));
    } else if (!best || state->latest_step_seen >= best->latest_step_seen) {
      best = std::move(*state);
    }
  }
  return best;
}

Result<std::optional<ResumeState>> ResumeFile::load() const {
  std::vector<std::string> problems;
  auto state = load(problems);
  if (!state && !problems.empty()) return Error{ErrorCode::corrupt, problems.front()};
  return state;
}

bool ResumeFile::stirred() { return watch_.changed(is_no_checkpoint); }

bool ResumeFile::has_new_checkpoint() {
  std::vector<Entry> now = look();
  if (now.empty() || now == seen_) return false;
  seen_ = std::move(now);
  return true;
}

Status ResumeFile::append(const ResumeState& state) const {
  const auto folder = storage::local_storage(folder_);
  auto entries = read_entries(*folder);
  // A file that cannot be read is of no use to anybody: start anew rather than keep it.
  Json list = entries.ok() ? std::move(*entries) : Json(Json::array());
  list.push_back(to_json(state));
  SMD_RETURN_IF_ERROR(folder->put(kFile, as_bytes(dump_json(list)), storage::Put::always, {}));
  return {};
}

Result<bool> ResumeFile::update(const ResumeState& state) {
  watch_.enter();
  std::vector<Entry> now = look();
  if (now.empty() || now == seen_) return false;
  SMD_RETURN_IF_ERROR(append(state));
  seen_ = std::move(now);
  return true;
}

Result<std::optional<std::string>> checkpoint_folder(const std::string& config_path) {
  SMD_TRY(auto named, read_named_folder(config_path));
  return named ? std::move(named->folder) : std::optional<std::string>();
}

}  // namespace smd
