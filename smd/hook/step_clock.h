#pragma once

// Counts steps: one number for the job, one for each mode. One thread at a time.

#include <array>
#include <map>
#include <optional>

#include "smd/base/result.h"
#include "smd/types/step.h"

namespace smd {

class StepClock final {
 public:
  Mode mode() const { return mode_; }
  // Selects the mode of the next step; the current step keeps its own.
  void set_mode(Mode mode) { mode_ = mode; }

  // The next step, by one in the job and in the mode.
  StepInfo advance();
  // A step with a number of the caller's, for the job and the mode alike; numbers must grow.
  Result<StepInfo> advance_to(Step step);
  // The current step, made by advance(), did not happen: its numbers are given to the next.
  void retreat();

  // Step -1 before the first one.
  const StepInfo& current() const { return current_; }
  bool started() const { return current_.step >= 0; }
  // -1: no step of this mode yet. The global counter always equals the job's step.
  Step mode_step(Mode mode) const { return mode_steps_[index_of(mode)]; }

  // Goes on where an earlier run stopped: the next step is `step` + 1. Modes that are not listed
  // start anew.
  void restore(Step step, const std::map<Mode, Step>& mode_steps);

 private:
  Mode mode_ = Mode::global;
  StepInfo current_{.step = -1, .mode = Mode::global, .mode_step = -1};
  std::array<Step, kModes.size()> mode_steps_{-1, -1, -1, -1};
};

}  // namespace smd
