// The part of the hook that begins and ends steps, and plans what they save.

#include <fmt/format.h>

#include "smd/hook/hook.h"

namespace smd {

Status Hook::prepare() {
  if (!started_) SMD_RETURN_IF_ERROR(start());
  settle(plan_options_.wishes, *collections_, plan_options_.save_config,
         options_.config.save_config.has_value());
  std::vector<std::string> warnings;
  const bool first = !plan_.has_value();
  if (budget_) find_stretched_collections();
  SMD_TRY(plan_, SavePlan::build(*collections_, plan_options_, warnings));
  for (std::string& warning : warnings) warn_once(std::move(warning));
  if (first) unseen_watches_ = plan_->watched_names();
  if (budget_) {
    plan_->set_stride(budget_->stride(), options_.config.max_interval);
    for (const auto& name : plan_options_.stretched_collections) {
      if (const auto collection = collections_->find(name)) inherited_.note(*collection);
    }
  }
  planned_revision_ = collections_->revision();
  for (Mode mode : kModes) {
    next_active_[index_of(mode)] =
        plan_->next_active(mode, step_clock_.mode_step(mode) + 1).value_or(kNever);
  }
  return {};
}

void Hook::set_mode(Mode mode) {
  step_clock_.set_mode(mode);
  // Often a checkpoint was just made, and a long evaluation begins.
  if (resume_file_ && recording_ && fork_guard_.in_owner()) save_resume_state();
}

Status Hook::begin_step() {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!fork_guard_.in_owner()) return {};
  if (recording_) finish_step();
  if (resume_file_ && recording_) save_resume_state();
  const StepInfo step = step_clock_.advance();
  return begin(step, step.mode_step);
}

Status Hook::begin_step(Step step) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!fork_guard_.in_owner()) return {};
  if (step <= step_clock_.current().step) return step_clock_.advance_to(step).error();
  if (recording_) finish_step();
  if (resume_file_ && recording_) save_resume_state();
  SMD_TRY(const StepInfo info, step_clock_.advance_to(step));
  return begin(info, info.mode_step);
}

Status Hook::begin_steps(int64_t count) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (count < 1) {
    return Error{ErrorCode::invalid_argument, fmt::format("{} steps cannot be begun.", count)};
  }
  if (!fork_guard_.in_owner()) return {};
  if (recording_) finish_step();
  if (resume_file_ && recording_) save_resume_state();
  const Step first = step_clock_.advance().mode_step;
  for (int64_t i = 1; i < count; ++i) step_clock_.advance();
  if (recording_) counted_.steps += count - 1;
  return begin(step_clock_.current(), first);
}

void Hook::cancel_step() {
  if (closed_ || !fork_guard_.in_owner() || step_open_ || step_ended_ || !scalars_.empty()) return;
  const Mode mode = step().mode;
  step_clock_.retreat();
  step_ended_ = step_clock_.started();
  saving_ = false;
  watching_ = false;
  if (!recording_ || !plan_) return;
  counted_.steps -= 1;
  next_active_[index_of(mode)] =
      plan_->next_active(mode, step_clock_.mode_step(mode) + 1).value_or(kNever);
}

Status Hook::begin(const StepInfo& step, Step first_mode_step) {
  step_ended_ = false;
  if (!recording_) return {};
  ++counted_.steps;
  if (!meter_.started()) meter_.start();
  Step& next = next_active_[index_of(step.mode)];
  if (!plan_ || collections_->revision() != planned_revision_) {
    if (Status prepared = prepare(); !prepared.ok()) {
      recording_ = recording_ && plan_.has_value();
      return prepared;
    }
    if (!recording_) return {};
    // prepare() looked beyond this step.
    next = plan_->next_active(step.mode, first_mode_step).value_or(kNever);
  }
  std::string& triggered = triggered_[index_of(step.mode)];
  saving_ = false;
  stretched_step_ = false;
  watching_ = observes_ || plan_->watches_anything(step.mode);
  if (!step_trigger_.empty()) step_trigger_.clear();
  if (step.step >= stride_from_) {
    use_stride(next_stride_.stride);
    next = plan_->next_active(step.mode, first_mode_step).value_or(kNever);
  }
  if (observes_) begin_observed(step);
  if (step.mode_step < next && triggered.empty()) return {};
  activate(step, first_mode_step, next);
  return {};
}

void Hook::begin_observed(const StepInfo& step) {
  plan_->observe(step.mode);
  if (recorder_) recorder_->begin_step(step);
}

void Hook::activate(const StepInfo& step, Step first_mode_step, Step& next) {
  const CostMeter::Scope cost(meter_);
  plan_->activate(step.mode, first_mode_step, step.mode_step);
  step_trigger_ = std::exchange(triggered_[index_of(step.mode)], {});
  if (!step_trigger_.empty()) plan_->trigger(step.mode, step_trigger_);
  saving_ = plan_->any_active();
  if (saving_ && remembers_saved()) recent_.begin_step(step);
  stretched_step_ = budget_ && plan_->any_stretched_active();
  next = plan_->next_active(step.mode, step.mode_step + 1).value_or(kNever);
}

std::optional<bool> Hook::is_saved_within(int64_t count) const {
  if (!plan_ || collections_->revision() != planned_revision_) return std::nullopt;
  const auto mode = index_of(step_clock_.mode());
  const Step last = step_clock_.mode_step(step_clock_.mode()) + count;
  return is_recording() && (last >= next_active_[mode] || !triggered_[mode].empty());
}

Status Hook::end_step() {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_recording()) return {};
  finish_step();
  if (resume_file_) save_resume_state();
  step_ended_ = step_clock_.started();
  saving_ = false;
  watching_ = false;
  return {};
}

void Hook::open_step() {
  if (step_open_ || !writer_) return;
  writer_->begin_step(step_clock_.current());
  step_open_ = true;
}

void Hook::finish_step() {
  if (!step_clock_.started() || step_ended_ || !plan_) return;
  if (!unseen_watches_.empty()) report_unseen_watches();
  if (!is_step_wanted() && !step_open_ && scalars_.empty() && dump_reason_.empty() &&
      late_.empty()) {
    return;
  }
  finish_wanted_step();
}

void Hook::finish_wanted_step() {
  const CostMeter::Scope cost(meter_);
  end_late_step();
  if (bad_.is_found() && is_bad_step_complete()) report_bad_tensor();
  if (recorder_ && saving_) recorder_->mark_saved();
  if (!dump_reason_.empty()) write_flight_recorder();
  if (saving_) {
    for (std::string& problem : plan_->take_problems()) warn_once(std::move(problem));
  }
  if (!scalars_.empty()) {
    static constexpr int64_t kOne[] = {1};
    open_step();
    scalars_.drain([&](const ScalarBoard::Scalar& scalar) {
      if (!writer_) return;
      tell_membership(scalar.name);
      const TensorView view{
          .data = scalar.value.bits.data(), .dtype = scalar.value.dtype, .shape = kOne};
      writer_->tensor(scalar.name, view, scalar.wall_secs);
      emit({.name = scalar.name,
            .value = scalar.value.to_double(),
            .wall_secs = scalar.wall_secs,
            .is_metric = scalar.is_metric});
    });
  }
  if (!step_open_) return;
  if (!exported_) export_collections();
  writer_->end_step();
  step_open_ = false;
  ++counted_.saved_steps;
  last_saved_step_ = step_clock_.current().step;
  report_writer_error();
  if (stretched_step_) settle_budget();
}

}  // namespace smd
