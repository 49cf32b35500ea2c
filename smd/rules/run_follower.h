#pragma once

// Evaluates rules on a run while it grows: reads what is new, hands it to the rules, and lets those
// that watch the clock look at it. Does not wait; whoever calls poll() does. One thread at a time.
//
//   RunFollower follower(trial, runner, clock);
//   while (!*follower.poll()) trial->wait(…);

#include <memory>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/rules/progress_meter.h"
#include "smd/rules/runner.h"
#include "smd/rules/trial_feed.h"
#include "smd/trial/trial.h"

namespace smd::rules {

class RunFollower final {
 public:
  // Borrows the runner, which has its rules by now.
  RunFollower(std::shared_ptr<Trial> trial, Runner& runner, std::shared_ptr<const Clock> clock);

  // True: nothing more will come, as the job has ended or no rule is left; the rules were asked for
  // the last time then. Error: the run cannot be read.
  Result<bool> poll();

  const TrialFeed& feed() const { return feed_; }

 private:
  const std::shared_ptr<Trial> trial_;
  Runner& runner_;
  ProgressMeter meter_;
  TrialFeed feed_;
};

}  // namespace smd::rules
