#pragma once

// Steps in words. Pure functions.

#include <string>

#include "smd/types/mode.h"
#include "smd/types/step.h"

namespace smd::cli {

// "step 40", or "step 40 (TRAIN 30)" where the job has modes.
std::string step_text(const StepInfo& step);

// What an axis of steps of this mode is called: "step", "TRAIN step".
std::string step_axis(Mode mode);

}  // namespace smd::cli
