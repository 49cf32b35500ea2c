#include "smd/cli/step_text.h"

#include <fmt/format.h>

namespace smd::cli {

std::string step_text(const StepInfo& step) {
  if (step.mode == Mode::global) return fmt::format("step {}", step.step);
  return fmt::format("step {} ({} {})", step.step, name_of(step.mode), step.mode_step);
}

std::string step_axis(Mode mode) {
  return mode == Mode::global ? "step" : fmt::format("{} step", name_of(mode));
}

}  // namespace smd::cli
