#include "smd/rules/run_follower.h"

namespace smd::rules {

RunFollower::RunFollower(std::shared_ptr<Trial> trial, Runner& runner,
                         std::shared_ptr<const Clock> clock)
    : trial_(std::move(trial)), runner_(runner), meter_(std::move(clock)), feed_(trial_) {}

Result<bool> RunFollower::poll() {
  SMD_RETURN_IF_ERROR(trial_->refresh());
  const bool is_all = trial_->snapshot()->loaded_all();
  SMD_RETURN_IF_ERROR(feed_.advance(runner_));
  runner_.tick(meter_.measure(*trial_));
  if (!is_all && runner_.is_active()) return false;
  runner_.finish();
  return true;
}

}  // namespace smd::rules
