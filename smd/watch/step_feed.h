#pragma once

// Gives the steps that a hook saves to a Runner, from memory: what a TrialFeed does with the files
// of a run. Rules see the same numbers as afterwards on disk. Writer thread only.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/rules/runner.h"
#include "smd/writer/output.h"

namespace smd::watch {

struct StepFeedOptions {
  std::string run;
  std::string worker;
  // Values that no rule insists on are kept for rules that look at them now and then, so many bytes
  // per step.
  size_t max_kept_bytes = size_t{64} << 20;
};

class StepFeed final {
 public:
  // The runner must outlive the feed, and be finished before the feed is gone.
  StepFeed(rules::Runner& runner, StepFeedOptions options);

  void membership(const SavedMembership& saved);
  bool wants(std::string_view tensor);
  // A call with another step than the last one forgets what the last one had.
  void reductions(const StepInfo& step, const SavedReductions& saved);
  void shape(const StepInfo& step, const SavedShape& saved);
  void strings(const StepInfo& step, const SavedStrings& saved);
  Status tensor(const StepInfo& step, const SavedTensor& saved);
  // Rules judge the step, if it had anything.
  void end_step();

 private:
  struct Row {
    uint32_t tensor = 0;
    uint32_t order = 0;
    rules::Statistics known;
    std::optional<Shape> saved_shape;
    bool has_value = false;
    std::optional<TensorValue> value;  // kept
  };

  // What is wanted of a tensor; asked once per tensor and revision.
  const rules::Runner::Wanted& wanted(uint32_t tensor);
  // The row of a tensor at this step; nullptr: nobody looks at it.
  Row* row_of(const StepInfo& step, std::string_view tensor, double wall_secs);
  rules::RunView run_view() const;
  uint64_t rows_id();

  rules::Runner& runner_;
  const StepFeedOptions options_;
  Names names_;
  CollectionSet collections_;
  uint64_t collections_revision_ = 1;

  std::vector<std::optional<rules::Runner::Wanted>> wanted_;  // by tensor
  uint64_t wanted_revision_ = 0;                              // of the runner
  uint64_t wanted_collections_ = 0;

  StepInfo step_{.step = -1};
  double wall_secs_ = 0;
  size_t kept_bytes_ = 0;
  std::vector<Row> rows_;
  std::vector<uint32_t> row_of_tensor_;  // index into rows_, by tensor; kNoRow: none

  std::map<std::vector<uint32_t>, uint64_t> ids_;  // of rows
  uint64_t last_id_ = 0;
  rules::StepView view_;
};

}  // namespace smd::watch
