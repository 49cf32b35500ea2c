#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/server/choice.h"
#include "smd/server/route.h"
#include "smd/server/run_summary.h"
#include "smd/server/statistic.h"
#include "smd/trial/run_health.h"

namespace smd::server::route_list {
namespace {

constexpr uint64_t kMostFileBytes = uint64_t{1} << 20;
constexpr size_t kMostFiles = 32;
constexpr size_t kMostItems = 100;

// Cuts lists that name each of very many tensors.
void shorten(Json& value) {
  if (value.is_array() && value.size() > kMostItems) {
    const size_t left_out = value.size() - kMostItems;
    value.erase(value.begin() + static_cast<std::ptrdiff_t>(kMostItems), value.end());
    value.push_back(fmt::format("… and {} more", left_out));
  }
  if (!value.is_structured()) return;
  for (Json& item : value) shorten(item);
}

// JSON files of a folder as {"file", "content"}; those that are too large or no JSON have null.
Json documents(storage::Storage& storage, std::string_view folder) {
  Json out = Json::array();
  const auto files = storage.list(folder, "");
  if (!files.ok()) return out;
  for (const storage::FileInfo& file : *files) {
    if (out.size() == kMostFiles) break;
    Json content = nullptr;
    if (file.path.ends_with(".json")) {
      const auto bytes = storage::read_all(storage, file.path, kMostFileBytes);
      auto parsed =
          bytes.ok() ? parse_json(as_text(*bytes), file.path) : Result<Json>(Error{bytes.error()});
      if (parsed.ok() && parsed->is_object()) content = std::move(*parsed);
      shorten(content);
    }
    out.push_back({{"file", file.path}, {"content", std::move(content)}});
  }
  return out;
}

// What each worker's hook wrote about its own cost.
Json bills(storage::Storage& storage) {
  constexpr std::string_view kFolder = "overhead";
  constexpr std::string_view kKeys[] = {"cost_secs",   "training_secs", "share", "steps",
                                        "saved_steps", "tensors",       "bytes", "stride"};
  // Runs of earlier versions do not have them.
  constexpr std::string_view kLaterKeys[] = {"left_out", "left_out_bytes"};
  Json out = Json::array();
  for (const Json& one : documents(storage, kFolder)) {
    const Json& content = one["content"];
    if (!content.is_object() || !content.contains("worker") || !content["worker"].is_string())
      continue;
    Json bill = {{"worker", content["worker"]}};
    for (const std::string_view key : kLaterKeys) {
      const auto found = content.find(key);
      if (found != content.end() && found->is_number()) bill[std::string(key)] = *found;
    }
    bool is_whole = true;
    for (const std::string_view key : kKeys) {
      const auto found = content.find(key);
      is_whole = is_whole && found != content.end() && found->is_number();
      if (is_whole) bill[std::string(key)] = *found;
    }
    if (is_whole) out.push_back(std::move(bill));
  }
  return out;
}

Json modes(const Snapshot& snapshot) {
  Json out = Json::array();
  for (const Mode mode : snapshot.modes()) {
    const auto steps = snapshot.steps(mode, true);
    out.push_back({{"mode", name_of(mode)},
                   {"steps", steps.size()},
                   {"first_step", steps.front()},
                   {"last_step", steps.back()}});
  }
  return out;
}

Json collections(const RunFacts& facts) {
  std::vector<uint64_t> counts(facts.snapshot->collections().size(), 0);
  for (const Model::Tensor& tensor : facts.model->tensors) {
    for (const uint32_t collection : tensor.collections) {
      if (collection < counts.size()) ++counts[collection];
    }
  }
  Json out = Json::array();
  for (const auto& collection : facts.snapshot->collections().collections()) {
    Json reductions = Json::array();
    bool value = true;
    bool shape = false;
    if (const auto& config = collection->reduction_config()) {
      value = config->save_raw_tensor();
      shape = config->save_shape();
      config->set().for_each([&](Reduction r) { reductions.push_back(r.name()); });
    }
    out.push_back({{"name", collection->name()},
                   {"tensors", counts[out.size()]},
                   {"value", value},
                   {"shape", shape},
                   {"reductions", std::move(reductions)},
                   {"patterns", collection->include_regex()}});
  }
  return out;
}

Json statistics(const RunFacts& facts) {
  Json out = Json::array();
  for (const StatisticInfo& info : statistics_of(facts)) {
    out.push_back({{"name", info.name},
                   {"label", info.label},
                   {"is_stored", info.is_stored},
                   {"suits_log", info.suits_log}});
  }
  return out;
}

Result<std::string> body(const ChosenRun& chosen) {
  constexpr double kNanos = 1e9;
  const RunFacts& facts = *chosen.facts;
  const Snapshot& snapshot = *facts.snapshot;
  Json document = run_summary(*chosen.run, facts);
  storage::Storage& storage = chosen.run->trial()->storage();
  RunFiles files;
  RunHealth health;
  const bool is_there = facts.state != RunState::gone && facts.state != RunState::failed;
  if (is_there && files.list_index(storage).ok() && files.list_events(storage).ok()) {
    health = check_health(snapshot, files);
    // Files that a running job has written since the last look are not lost.
    if (!snapshot.loaded_all()) health.index_files_left_out = 0;
  }
  uint64_t incomplete = 0;
  for (size_t i = 0; i < snapshot.row_count(); ++i) {
    incomplete += snapshot.is_complete(snapshot.row(i)) ? 0 : 1;
  }
  document["layout"] = files.packed ? "packed" : files.index_files > 0 ? "original" : "unknown";
  document["modes"] = modes(snapshot);
  document["worker_names"] = snapshot.workers();
  document["announced_workers"] = snapshot.num_workers();
  document["incomplete_steps"] = incomplete;
  document["statistics"] = statistics(facts);
  document["collections"] = collections(facts);
  document["files"] = {
      {"event_files", files.event_files},
      {"event_bytes", files.event_bytes},
      {"index_files", files.index_files},
      {"index_bytes", files.index_bytes},
      {"newest_secs",
       files.newest_ns == 0 ? Json(nullptr) : Json(static_cast<double>(files.newest_ns) / kNanos)}};
  document["health"] = {{"is_well", health.is_well()},
                        {"index_files_left_out", health.index_files_left_out},
                        {"event_files_missing", health.event_files_missing},
                        {"temporary_files", health.temporary_files}};
  document["configuration"] = is_there ? documents(storage, "collections") : Json::array();
  document["bill"] = is_there ? bills(storage) : Json::array();
  document["notes"] = is_there ? documents(storage, "findings") : Json::array();
  return body_of(document);
}

}  // namespace

extern const Route run;
const Route run = {
    .path = "/api/runs/{run}",
    .answer = [](const Question& question) -> Result<Answer> {
      SMD_TRY(ChosenRun chosen, choose_run(question.site, question.run));
      chosen.run->want_verdict();
      return Answer{.version = summary_version(*chosen.run, *chosen.facts),
                    .body = [chosen] { return body(chosen); }};
    },
};

}  // namespace smd::server::route_list
