#pragma once

// Names of the files of a run in the original's layout, relative to the run's root. Pure functions.

#include <optional>
#include <string>
#include <string_view>

#include "smd/types/step.h"

namespace smd::format {

inline constexpr int64_t kFilesPerIndexPrefix = 1000;
inline constexpr std::string_view kEndMarker = "training_job_end.ts";
inline constexpr std::string_view kClaim = "claim.smd";
// There while a copy of a run is made; what an interrupted copy leaves behind is known by it.
inline constexpr std::string_view kRepackMark = ".smdebug/repack.json";

// `worker` as it stands in file names (worker_to_file_name).
std::string event_file_name(Step step, std::string_view worker);
std::string index_file_name(Step step, std::string_view worker);
std::string collections_file_name(std::string_view worker);

struct IndexFileName {
  Step step = 0;
  std::string worker;  // with device strings restored

  bool operator==(const IndexFileName&) const = default;
};

// From any path that ends in <step>_<worker>.json (.csv, .tfevents); nullopt: not such a name.
std::optional<IndexFileName> parse_step_file_name(std::string_view path);

}  // namespace smd::format
