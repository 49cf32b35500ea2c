#pragma once

// A rule at work on one run. One thread at a time.
//
// A rule sees every step once, in order, and may look back by keeping what it needs; it never looks
// forward. Numbers of earlier steps belong to one mode: rules that compare steps keep their state
// by mode. Comparisons with NaN are false unless the rule says otherwise.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/log.h"
#include "smd/base/result.h"
#include "smd/rules/hit.h"
#include "smd/rules/selection.h"
#include "smd/rules/step_view.h"
#include "smd/trial/trial.h"

namespace smd::rules {

// How far the run has come, for rules that watch the clock.
struct Progress {
  double now_secs = 0;                  // monotonic
  std::optional<StepInfo> newest_step;  // nullopt: none yet
  double newest_secs = 0;               // when it was first seen; without one, when watching began
  std::map<std::string, double> worker_secs;  // the same of each worker
  bool has_ended = false;                     // the job said so
};

class Rule {
 public:
  virtual ~Rule() = default;

  // Everything the rule looks at; the same objects in every call. Decides what is read for it.
  virtual std::vector<Selection*> selections() = 0;
  // A step. An error ends this rule, not the others.
  virtual Status observe(const StepView& step, Hits& hits) = 0;
  // The job has ended or will not be followed any longer; called at most once.
  virtual Status finish(const RunView&, Hits&) { return {}; }
  // Now and then while a growing run is followed.
  virtual Status tick(const Progress&, Hits&) { return {}; }
  // How often tick() should be called, in seconds; nullopt: the rule does not need it.
  virtual std::optional<double> tick_secs() const { return std::nullopt; }
  // True: further steps cannot change anything.
  virtual bool is_done() const { return false; }
  // Why the rule could not judge the run although its tensors are there, as a sentence.
  virtual std::optional<std::string> missing() const { return std::nullopt; }
  // What people should know besides hits, such as which file was written; empty: nothing.
  virtual std::string remark() const { return {}; }
};

// What a rule may use besides the run.
struct RuleContext {
  std::shared_ptr<Log> log = null_log();
  std::shared_ptr<const Clock> clock = system_clock();
  // Other runs to compare with, for rules that do so; without any, the rule opens those that its
  // parameters name.
  std::vector<std::shared_ptr<Trial>> other_trials{};
};

// What RuleKind::create returns.
template <typename T, typename... Args>
Result<std::unique_ptr<Rule>> make_rule(Args&&... args) {
  return std::unique_ptr<Rule>(std::make_unique<T>(std::forward<Args>(args)...));
}

}  // namespace smd::rules
