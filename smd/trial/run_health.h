#pragma once

// The files of a run, by name and size alone, and what that tells of its health: a quick look that
// opens no file. `verify_run` looks closer. Plain values and functions, which any thread may call.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/trial.h"

namespace smd {

// A job that wrote nothing for so long has probably been stopped.
inline constexpr double kSilenceSecs = 600;

struct RunFiles {
  bool packed = false;
  uint64_t event_files = 0;  // or segments
  uint64_t event_bytes = 0;
  uint64_t index_files = 0;  // or logs
  uint64_t index_bytes = 0;
  uint64_t temporary_files = 0;
  uint64_t steps_listed = 0;  // index files that have the name of one
  int64_t newest_ns = 0;
  std::vector<std::string> events;  // sorted

  // List index files before the run is read, and events after: then a job that runs adds none that
  // look as if they were lost. Temporary files are seen if the storage lists them.
  Status list_index(storage::Storage& storage);
  Status list_events(storage::Storage& storage);
};

struct RunHealth {
  uint64_t index_files_left_out = 0;
  uint64_t event_files_missing = 0;
  uint64_t temporary_files = 0;

  bool is_well() const {
    return index_files_left_out == 0 && event_files_missing == 0 && temporary_files == 0;
  }
};

RunHealth check_health(const Snapshot& snapshot, const RunFiles& files);

// Unix time of the first value of a step; nullopt: nobody recorded it, or it cannot be read.
// Reads the beginning of a record where no log tells the time.
std::optional<double> wall_secs(const Trial& trial, const Snapshot& snapshot, const StepRow& row);

}  // namespace smd
