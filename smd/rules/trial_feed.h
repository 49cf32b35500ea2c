#pragma once

// Gives the steps of a recorded run to a Runner: reads the numbers that its rules ask for in large
// pieces, computes what was not stored but can be, and hands values out on demand. Must live until
// the runner has finished. One thread at a time.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/rules/runner.h"
#include "smd/trial/trial.h"

namespace smd::rules {

struct TrialFeedOptions {
  StepRange steps{};  // global
  // Also steps that some worker has not reached yet, such as the last ones of a job that was
  // killed. Steps that it gives are never looked at again.
  bool incomplete = false;
};

class TrialFeed final {
 public:
  explicit TrialFeed(std::shared_ptr<Trial> trial, TrialFeedOptions options = {});
  ~TrialFeed();

  // Every step of the trial's newest snapshot that was not given yet, up to but without `end`; call
  // again after a refresh.
  // Steps whose files are damaged are left out. Error: the numbers of none of the steps could be
  // read, as the run is gone or cannot be reached; call again to try again.
  Status advance(Runner& runner, std::optional<Step> end = {});
  void set_incomplete(bool incomplete) { options_.incomplete = incomplete; }

  // Steps left out so far, and why the first one was.
  uint64_t unreadable_steps() const { return unreadable_steps_; }
  const std::string& first_problem() const { return first_problem_; }

 private:
  struct Plan;
  class Reading;

  std::shared_ptr<const Plan> plan_of(const StepRow& row, const Runner& runner);
  Plan make_plan(const StepRow& row, const Runner& runner) const;
  RunView run_view() const;
  Status give(std::span<const StepRow* const> rows, Runner& runner);

  struct Plans;

  const std::shared_ptr<Trial> trial_;
  TrialFeedOptions options_;
  const std::string name_;
  std::shared_ptr<const Snapshot> snapshot_;
  // Of the step that was given last: the runner borrows it until it finishes.
  std::shared_ptr<const Snapshot> observed_;
  std::unique_ptr<Plans> plans_;
  StepView view_;
  Step next_step_ = 0;
  uint64_t unreadable_steps_ = 0;
  std::string first_problem_;
};

}  // namespace smd::rules
