#pragma once

// What the checks of every layout share: the report, collections and workers, the end marker. One
// thread at a time.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/verify.h"
#include "smd/types/step.h"

namespace smd::internal {

class RunCheck final {
 public:
  // Borrows both.
  RunCheck(storage::Storage& storage, const VerifyOptions& options)
      : storage_(storage), options_(options) {}

  // Whether the file is one that every layout has; it is then taken care of.
  bool take(const storage::FileInfo& file);
  void add(RunProblem problem);
  void saw(Step step, const std::string& worker) {
    steps_.insert(step);
    workers_.insert(worker);
  }
  // Bytes of files with tensors that are behind us.
  void tell(uint64_t bytes);

  // The job said that it has ended; known once all files were taken.
  bool ended() const { return report.ended; }
  void check_collections(bool has_steps);
  // Last: workers, and what is told of the run as a whole.
  VerifyReport finish();

  VerifyReport report;

 private:
  void check_workers();

  storage::Storage& storage_;
  const VerifyOptions& options_;
  std::vector<storage::FileInfo> collections_;
  std::set<std::string> announced_;  // workers with a collections file
  std::set<std::string> workers_;    // workers that wrote steps
  std::set<Step> steps_;
  std::optional<int64_t> num_workers_;
  bool copy_incomplete_ = false;
  uint64_t done_bytes_ = 0;
};

// One per layout.
Result<VerifyReport> verify_original(storage::Storage& storage, const VerifyOptions& options);
Result<VerifyReport> verify_packed(storage::Storage& storage, const VerifyOptions& options);

}  // namespace smd::internal
