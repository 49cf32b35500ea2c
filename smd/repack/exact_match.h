#pragma once

// Whether one run is a copy of another, bit for bit. Stricter than diff_trials(), for which all
// NaNs are equal, zero has no sign, and of a repeated mode step only the first counts.

#include <functional>
#include <optional>
#include <string>

#include "smd/base/result.h"
#include "smd/trial/trial.h"

namespace smd {

// A sentence about the first thing in which they differ; nullopt: `copy` holds what `run` holds.
// Times are compared where both layouts hold them. `next` is called after each step of a worker.
// Errors tell of values that cannot be read.
Result<std::optional<std::string>> first_mismatch(Trial& run, Trial& copy,
                                                  const std::function<void()>& next);

}  // namespace smd
