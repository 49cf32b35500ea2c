#pragma once

// The environment variables that steer recording and reading. An immutable snapshot, thread-safe:
// take one when the object that uses it is created.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "smd/base/result.h"
#include "smd/types/run_layout.h"

namespace smd {

// This process among those of one job.
struct ProcessRank {
  int rank = 0;
  int size = 1;

  bool operator==(const ProcessRank&) const = default;
};

class Environment final {
 public:
  using Variables = std::map<std::string, std::string, std::less<>>;

  explicit Environment(Variables variables = {}) : variables_(std::move(variables)) {}
  static Environment of_process();

  // nullopt: not set. The view lives as long as this object.
  std::optional<std::string_view> find(std::string_view name) const;

  // Configuration files: the variable, else the place where a training container has it. A variable
  // that is set but empty counts as not set.
  std::string config_file_path() const;
  std::string tensorboard_config_file_path() const;
  std::string checkpoint_config_file_path() const;
  // Where the metrics file goes; the working directory unless set.
  std::string metrics_directory() const;

  // A path that begins with ~ or ~/ in full, as far as HOME is known; others as they are.
  std::string expand_home(std::string_view path) const;

  // True in a managed training job: TRAINING_JOB_NAME is set, even to nothing.
  bool in_sagemaker() const { return find("TRAINING_JOB_NAME").has_value(); }

  // USE_SMDEBUG, by default true, and SMDEBUG_STRICT, by default false. Accepted in any case:
  // y yes t true on 1, n no f false off 0.
  Result<bool> use_smdebug() const;
  Result<bool> strict() const;

  // SMDEBUG_LAYOUT, by default the original.
  Result<RunLayout> layout() const;

  // Rank and size from the first launcher that set both of its variables; nullopt: none did.
  // Error when they are not numbers with 0 ≤ rank < size.
  Result<std::optional<ProcessRank>> process_rank() const;

  // For recording to an object store. Where files wait that are not sent yet: SMDEBUG_SPOOL_DIR,
  // else smdebug/spool below the user's cache folder.
  std::string spool_directory() const;
  Result<double> spool_drain_secs() const;  // 60
  Result<int64_t> spool_max_bytes() const;  // 4 GiB
  // How long a step of a packed run may wait for others that are sent with it.
  Result<double> segment_secs() const;  // 10

  // For reading. Each is looked up as SMDEBUG_X, then as X.
  Result<double> training_end_delay_refresh_secs() const;  // 1
  Result<int64_t> incomplete_step_wait_window() const;     // 1000
  Result<int64_t> missing_event_file_retry_limit() const;  // 100

 private:
  std::string path_or(std::string_view name, std::string_view fallback) const;
  Result<bool> flag(std::string_view name, bool fallback) const;
  Result<double> number(std::string_view name, double fallback) const;
  Result<int64_t> whole_number(std::string_view name, int64_t fallback) const;
  // {spelling, value} of a variable, with our prefix or without.
  std::optional<std::pair<std::string, std::string_view>> find_spelled(std::string_view name) const;

  Variables variables_;
};

}  // namespace smd
