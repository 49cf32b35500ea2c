#include "smd/rules/progress_meter.h"

#include <chrono>

namespace smd::rules {
namespace {

double monotonic_secs(const Clock& clock) {
  return std::chrono::duration<double>(clock.now().time_since_epoch()).count();
}

}  // namespace

ProgressMeter::ProgressMeter(std::shared_ptr<const Clock> clock)
    : clock_(std::move(clock)), newest_secs_(monotonic_secs(*clock_)) {}

Progress ProgressMeter::measure(const Trial& trial) {
  const auto snapshot = trial.snapshot();
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
               .has_ended = trial.has_ended()};
  for (uint32_t worker = 0; worker < heard_.size(); ++worker) {
    if (heard_[worker].newest_step < 0) continue;
    out.worker_secs[snapshot->names().workers[worker]] = heard_[worker].secs;
  }
  return out;
}

}  // namespace smd::rules
