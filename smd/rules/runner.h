#pragma once

// Evaluates rules on one run, all of them in one pass. Knows no files: a feed gives it the steps.
// A rule that fails is left out from then on; the others go on. One thread at a time.
//
//   Runner runner({});
//   runner.add(*find_rule("ExplodingTensor"), Parameters…);
//   TrialFeed feed(trial);
//   feed.advance(runner);                 // again after each refresh of a growing run
//   runner.finish();
//   for (const Finding& finding : runner.findings()) …

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "smd/rules/finding.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules {

enum class RuleStatus : uint8_t { in_progress, no_issues_found, issues_found, error, stopped };
// "InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopped".
std::string_view name_of(RuleStatus status);

// What happens to a rule whose condition is met.
enum class OnFire : uint8_t { stop, keep_going };

// One rule on the run. Read it through Runner::evaluations().
class Evaluation final {
 public:
  const RuleKind& kind() const { return *kind_; }
  const Parameters& parameters() const { return parameters_; }
  RuleStatus status() const { return status_; }
  // Of the status Error.
  const std::string& error() const { return error_; }
  // What the rule looks at.
  const std::vector<Selection*>& selections() const { return selections_; }
  uint64_t hit_count() const { return hit_count_; }
  uint64_t violation_count() const { return finding_.violation_count; }
  // Tensors that were judged so far.
  uint64_t datapoints() const;
  // Why nothing could be judged so far, as a sentence; nullopt: something was.
  std::optional<std::string> missing() const;
  // See Rule::remark().
  std::string remark() const { return rule_->remark(); }
  // nullopt: no hit.
  std::optional<Finding> finding() const;

 private:
  friend class Runner;
  const RuleKind* kind_ = nullptr;
  Parameters parameters_;
  std::unique_ptr<Rule> rule_;
  std::vector<Selection*> selections_;
  RuleStatus status_ = RuleStatus::in_progress;
  std::string error_;
  Severity highest_ = Severity::error;
  uint64_t max_violations_ = 0;
  uint64_t hit_count_ = 0;
  bool is_active_ = true;
  Finding finding_;  // without tensors and workers
  std::unordered_map<uint32_t, Finding::TensorHits> tensors_;
  std::unordered_map<uint32_t, std::string> workers_;
};

struct RunnerOptions {
  OnFire on_fire = OnFire::keep_going;
  RuleContext context{};
  // Called for each hit, before the next rule is asked.
  std::function<void(const Evaluation&, const Hit&)> on_hit{};
};

class Runner final {
 public:
  explicit Runner(RunnerOptions options) : options_(std::move(options)) {}

  // Errors as of RuleKind::create and Parameters::parse; nothing is added then. `highest`: hits
  // that are more severe count as this.
  Status add(const RuleKind& kind, Parameters parameters, Severity highest = Severity::error);
  Status add(const RuleKind& kind, const Json& parameters, Severity highest = Severity::error);

  // --- for feeds
  // What somebody still needs of a tensor.
  struct Wanted {
    bool any = false;         // somebody looks at it
    StatisticSet statistics;  // needed
    StatisticSet context;     // welcome, if they cost nothing
    bool values = false;      // the elements are needed
  };
  Wanted wanted(const RunView& run, uint32_t tensor) const;
  // All columns that wanted() may name.
  StatisticSet columns() const;
  // Changes when wanted() may answer less than before.
  uint64_t revision() const { return revision_; }
  bool is_active() const;
  // Steps in increasing order. What the step's RunView borrows must live until finish().
  void observe(const StepView& step);
  void tick(const Progress& progress);
  // The shortest time between two ticks that a rule asks for; nullopt: nobody does.
  std::optional<double> tick_secs() const;
  // The run has ended, or nobody will follow it any longer: rules are asked for the last time.
  void finish();
  // Evaluation was broken off: rules that still run become Stopped.
  void stop();

  const std::vector<std::unique_ptr<Evaluation>>& evaluations() const { return evaluations_; }
  // Of all rules that fired, ranked.
  std::vector<Finding> findings() const;
  uint64_t step_count() const { return step_count_; }

 private:
  // After each call of a rule.
  void settle(Evaluation& evaluation, const Status& status, Hits& hits);

  RunnerOptions options_;
  std::vector<std::unique_ptr<Evaluation>> evaluations_;
  uint64_t revision_ = 0;
  uint64_t step_count_ = 0;
  std::optional<RunView> run_;
  StepInfo last_step_{.step = -1};
  double last_wall_secs_ = 0;
};

}  // namespace smd::rules
