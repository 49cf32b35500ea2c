#include "smd/server/verdict.h"

#include <algorithm>

namespace smd::server {
namespace {

// Rows are sorted by step; a run may have millions.
size_t first_row_from(const Snapshot& snapshot, Step step) {
  size_t begin = 0;
  for (size_t count = snapshot.row_count(); count > 0;) {
    const size_t half = count / 2;
    if (snapshot.row(begin + half).info.step < step) {
      begin += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return begin;
}

}  // namespace

std::string_view name_of(Verdict::State state) {
  constexpr std::array<std::string_view, 3> kNames = {"pending", "live", "final"};
  return kNames[static_cast<size_t>(state)];
}

Judgement::Judgement(std::shared_ptr<Trial> trial, std::shared_ptr<const Clock> clock)
    : trial_(std::move(trial)),
      runner_({.on_fire = rules::OnFire::keep_going, .context = {.clock = clock}}),
      feed_(trial_),
      meter_(clock) {
  auto left_out = rules::add_rules({}, runner_);
  // Nobody gave names or parameters that could be wrong.
  SMD_CHECK(left_out.ok());
  left_out_ = std::move(*left_out);
}

Judgement::~Judgement() {
  // What the runner borrows from the feed must not outlive it.
  if (!is_final_) runner_.stop();
}

Result<bool> Judgement::advance(size_t most_rows, bool is_over) {
  if (is_final_) return true;
  const auto snapshot = trial_->snapshot();
  feed_.set_incomplete(is_over);
  std::optional<Step> end;
  const size_t next = first_row_from(*snapshot, next_step_);
  if (snapshot->row_count() - next > most_rows) end = snapshot->row(next + most_rows).info.step;
  SMD_RETURN_IF_ERROR(feed_.advance(runner_, end));
  if (end) {
    next_step_ = *end;
    return false;
  }
  if (!is_over) {
    runner_.tick(meter_.measure(*trial_));
    // Steps that are not complete yet are given later.
    next_step_ = snapshot->last_complete_step() + 1;
    return true;
  }
  if (snapshot->row_count() > 0) {
    next_step_ = snapshot->row(snapshot->row_count() - 1).info.step + 1;
  }
  runner_.finish();
  is_final_ = true;
  return true;
}

bool Judgement::is_outdated() const {
  const auto snapshot = trial_->snapshot();
  return is_final_ && snapshot->row_count() > 0 &&
         snapshot->row(snapshot->row_count() - 1).info.step >= next_step_;
}

Verdict Judgement::verdict(Verdict::State state) const {
  const rules::Diagnosis diagnosis = rules::conclude(trial_->name(), runner_, feed_, left_out_);
  Verdict out{.state = state, .steps = runner_.step_count(), .document = diagnosis.to_json()};
  for (const rules::Finding& finding : diagnosis.findings) {
    ++out.counts[static_cast<size_t>(finding.severity)];
  }
  return out;
}

}  // namespace smd::server
