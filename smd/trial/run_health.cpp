#include "smd/trial/run_health.h"

#include <algorithm>

#include "smd/format/file_name.h"
#include "smd/format/packed_file_name.h"
#include "smd/storage/temporary.h"

namespace smd {

Status RunFiles::list_index(storage::Storage& storage) {
  SMD_TRY(auto logs, storage.list(format::kLogFolder, ""));
  // In object stores the entries of the journal stand for logs.
  if (logs.empty()) {
    SMD_TRY(logs, storage.list(std::string(format::kPackedFolder) + "/manifest", ""));
  }
  packed = !logs.empty();
  SMD_TRY(const auto indices, storage.list("index", ""));
  for (const storage::FileInfo& file : packed ? logs : indices) {
    newest_ns = std::max(newest_ns, file.mtime_ns);
    if (storage::is_temporary(file.path)) {
      ++temporary_files;
      continue;
    }
    ++index_files;
    index_bytes += static_cast<uint64_t>(file.size_bytes);
    if (!packed && format::parse_step_file_name(file.path)) ++steps_listed;
  }
  return {};
}

Status RunFiles::list_events(storage::Storage& storage) {
  SMD_TRY(auto found, storage.list(packed ? format::kSegmentFolder : "events", ""));
  for (storage::FileInfo& file : found) {
    newest_ns = std::max(newest_ns, file.mtime_ns);
    if (storage::is_temporary(file.path)) {
      ++temporary_files;
      continue;
    }
    ++event_files;
    event_bytes += static_cast<uint64_t>(file.size_bytes);
    events.push_back(std::move(file.path));
  }
  return {};
}

RunHealth check_health(const Snapshot& snapshot, const RunFiles& files) {
  RunHealth health{.temporary_files = files.temporary_files};
  uint64_t parts = 0;
  for (size_t i = 0; i < snapshot.row_count(); ++i) {
    snapshot.for_each_part(snapshot.row(i), [&](uint32_t, const Part& part) {
      ++parts;
      const std::string file = snapshot.file_of(part);
      const bool is_there = std::binary_search(files.events.begin(), files.events.end(), file);
      if (!file.empty() && !is_there) ++health.event_files_missing;
    });
  }
  if (files.steps_listed > parts) health.index_files_left_out = files.steps_listed - parts;
  return health;
}

std::optional<double> wall_secs(const Trial& trial, const Snapshot& snapshot, const StepRow& row) {
  for (uint32_t i = row.first_part; i != kNone; i = snapshot.part(i).next) {
    const Part& part = snapshot.part(i);
    if (part.wall_secs > 0) return part.wall_secs;
    if (snapshot.layout_of(part).entries().empty()) continue;
    const auto about = trial.describe(snapshot, {.part = i, .entry = 0});
    if (about.ok() && about->wall_secs > 0) return about->wall_secs;
  }
  return std::nullopt;
}

}  // namespace smd
