#pragma once

// Where a value belongs in time: the global step names the files, the mode step drives SaveConfig.

#include <cstdint>

#include "smd/types/mode.h"

namespace smd {

using Step = int64_t;

struct StepInfo {
  Step step = 0;  // global: counts every step of the job
  Mode mode = Mode::global;
  Step mode_step = 0;  // counts the steps of `mode`

  bool operator==(const StepInfo&) const = default;
};

}  // namespace smd
