#include "smd/hook/step_clock.h"

#include <fmt/format.h>

namespace smd {

StepInfo StepClock::advance() {
  current_.step += 1;
  current_.mode = mode_;
  if (mode_ != Mode::global) mode_steps_[index_of(mode_)] += 1;
  mode_steps_[index_of(Mode::global)] = current_.step;
  current_.mode_step = mode_steps_[index_of(mode_)];
  return current_;
}

void StepClock::retreat() {
  if (current_.step < 0) return;
  if (current_.mode != Mode::global) mode_steps_[index_of(current_.mode)] -= 1;
  current_.step -= 1;
  mode_steps_[index_of(Mode::global)] = current_.step;
  current_.mode_step = mode_steps_[index_of(current_.mode)];
}

Result<StepInfo> StepClock::advance_to(Step step) {
  if (step <= current_.step) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("Step {} cannot follow step {}: step numbers must grow.", step, current_.step)};
  }
  mode_steps_[index_of(mode_)] = step;
  mode_steps_[index_of(Mode::global)] = step;
  current_ = {.step = step, .mode = mode_, .mode_step = step};
  return current_;
}

void StepClock::restore(Step step, const std::map<Mode, Step>& mode_steps) {
  for (const auto& [mode, at] : mode_steps) mode_steps_[index_of(mode)] = at;
  mode_steps_[index_of(Mode::global)] = step;
  current_ = {.step = step, .mode = Mode::global, .mode_step = step};
}

}  // namespace smd
