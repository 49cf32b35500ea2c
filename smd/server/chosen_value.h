#pragma once

// A value of a tensor that somebody asked for: which step, worker and slice, and its elements.
// What the routes for values have in common. Functions, which any thread may call.

#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/server/choice.h"
#include "smd/server/slice.h"
#include "smd/trial/tensor_value.h"

namespace smd::server {

inline constexpr ParameterSpec kValueParameters[] = {kTensorParameter, kIdParameter,
                                                     {.name = "step"}, kModeParameter,
                                                     kWorkerParameter, {.name = "slice"}};

struct ChosenValue {
  ChosenRun chosen;
  uint32_t tensor = 0;
  Mode mode = Mode::global;
  StepInfo step;
  std::string worker;  // that saved it
  Location at;
  std::string slice;
};

// not_found: it was not saved there. invalid_argument: a step without digits and the like; the
// slice is looked at when the shape is known.
Result<ChosenValue> choose_value(const Question& question);

// The whole value. invalid_argument: larger than 2 GiB.
Result<TensorValue> read_value(const ChosenValue& value);

}  // namespace smd::server
