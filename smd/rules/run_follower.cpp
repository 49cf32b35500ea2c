#include "smd/rules/run_follower.h"

#include <algorithm>

namespace smd::rules {
namespace {

double monotonic_secs(const Clock& clock) {
  return std::chrono::duration<double>(clock.now().time_since_epoch()).count();
}

}  // namespace

RunFollower::RunFollower(std::shared_ptr<Trial> trial, Runner& runner,
                         std::shared_ptr<const Clock> clock)
    : trial_(std::move(trial)),
      runner_(runner),
      clock_(std::move(clock)),
      feed_(trial_),
      newest_secs_(monotonic_secs(*clock_)) {}

Progress RunFollower::progress() {
  const auto snapshot = trial_->snapshot();
  const double now = monotonic_secs(*clock_);
  heard_.resize(snapshot->names().workers.size());
  std::vector<bool> seen(heard_.size());
  for (size_t i = snapshot->row_count(); i-- > 0;) {
    const StepRow& row = snapshot->row(i);
    bool may_be_news = false;
    for (size_t worker = 0; worker < heard_.size(); ++worker) {
      may_be_news = may_be_news || (!seen[worker] && row.info.step > heard_[worker].newest_step);
    }
    if (!may_be_news) break;
    snapshot->for_each_part(row, [&](uint32_t, const Part& part) {
      if (seen[part.worker]) return;
      seen[part.worker] = true;
      Heard& heard = heard_[part.worker];
      if (row.info.step <= heard.newest_step) return;
      heard = {.newest_step = row.info.step, .secs = now};
    });
  }
  if (snapshot->row_count() > 0) {
    const StepInfo newest = snapshot->row(snapshot->row_count() - 1).info;
    if (!newest_step_ || newest.step > newest_step_->step) {
      newest_step_ = newest;
      newest_secs_ = now;
    }
  }
  Progress out{.now_secs = now,
               .newest_step = newest_step_,
               .newest_secs = newest_secs_,
               .has_ended = trial_->has_ended()};
  for (uint32_t worker = 0; worker < heard_.size(); ++worker) {
    if (heard_[worker].newest_step < 0) continue;
    out.worker_secs[snapshot->names().workers[worker]] = heard_[worker].secs;
  }
  return out;
}

Result<bool> RunFollower::poll() {
  SMD_RETURN_IF_ERROR(trial_->refresh());
  const bool is_all = trial_->snapshot()->loaded_all();
  SMD_RETURN_IF_ERROR(feed_.advance(runner_));
  runner_.tick(progress());
  if (!is_all && runner_.is_active()) return false;
  runner_.finish();
  return true;
}

}  // namespace smd::rules
