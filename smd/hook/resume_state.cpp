#include "smd/hook/resume_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/base/json.h"
#include "smd/storage/storage.h"

namespace smd {
namespace {

constexpr std::string_view kFile = "metadata.json";
constexpr std::string_view kUploaded = "sagemaker-uploaded";

Json to_json(const ResumeState& state) {
  Json modes = Json::object();
  for (const auto& [mode, step] : state.mode_steps) modes[std::string(name_of(mode))] = step;
  return {{"training-run", state.training_run},
          {"latest-global-step-saved",
           state.latest_step_saved ? Json(*state.latest_step_saved) : Json(nullptr)},
          {"latest-global-step-seen", state.latest_step_seen},
          {"latest-mode-step", std::move(modes)}};
}

Result<ResumeState> from_json(const Json& json, const std::string& path) {
  ResumeState state;
  const auto number = [&](const char* key) -> std::optional<int64_t> {
    const auto it = json.find(key);
    if (it == json.end() || !it->is_number_integer()) return std::nullopt;
    return it->get<int64_t>();
  };
  const auto seen = json.is_object() ? number("latest-global-step-seen") : std::nullopt;
  if (!seen || *seen < 0) {
    return Error{ErrorCode::corrupt,
                 fmt::format("An entry has no valid 'latest-global-step-seen': {}", path)};
  }
  state.latest_step_seen = *seen;
  state.latest_step_saved = number("latest-global-step-saved");
  state.training_run = number("training-run").value_or(0);
  if (const auto modes = json.find("latest-mode-step"); modes != json.end() && modes->is_object()) {
    for (const auto& [name, step] : modes->items()) {
      const auto mode = parse_mode(name);
      if (mode.ok() && step.is_number_integer()) state.mode_steps[*mode] = step.get<int64_t>();
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

ResumeFile::ResumeFile(std::string folder) : folder_(std::move(folder)), seen_(look()) {}

std::vector<ResumeFile::Entry> ResumeFile::look() const {
  std::vector<Entry> entries;
  const auto files = storage::local_storage(folder_)->list("", "");
  if (!files.ok()) return entries;
  for (const auto& file : *files) {
    const std::string_view name = std::string_view(file.path).substr(file.path.rfind('/') + 1);
    if (name == kFile || name.find(kUploaded) != std::string_view::npos) continue;
    entries.emplace_back(file.path, file.size_bytes, file.mtime_ns);
  }
  return entries;
}

Result<std::optional<ResumeState>> ResumeFile::load() const {
  const auto folder = storage::local_storage(folder_);
  SMD_TRY(const Json entries, read_entries(*folder));
  std::optional<ResumeState> best;
  for (const Json& entry : entries) {
    SMD_TRY(ResumeState state, from_json(entry, fmt::format("{}/{}", folder_, kFile)));
    if (!best || state.latest_step_seen >= best->latest_step_seen) best = std::move(state);
  }
  return best;
}

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

Status ResumeFile::update(const ResumeState& state) {
  std::vector<Entry> now = look();
  if (now.empty() || now == seen_) return {};
  SMD_RETURN_IF_ERROR(append(state));
  seen_ = std::move(now);
  return {};
}

std::optional<std::string> checkpoint_folder(const std::string& config_path) {
  const size_t slash = config_path.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : config_path.substr(0, slash);
  const auto bytes =
      storage::read_all(*storage::local_storage(parent), config_path.substr(slash + 1));
  if (!bytes.ok()) return std::nullopt;
  const auto json = parse_json(as_text(*bytes), config_path);
  if (!json.ok() || !json->is_object() || !json->contains("LocalPath")) return std::nullopt;
  const Json& path = (*json)["LocalPath"];
  if (!path.is_string()) return std::nullopt;
  return path.get<std::string>();
}

}  // namespace smd
