#pragma once

// The core's Trial as an argument. The GIL is held.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <string>
#include <vector>

#include "smd/trial/trial.h"

namespace smdebug {

namespace nb = nanobind;

// SMDebugTypeError for anything but the core's Trial. A handle, so that the order in which the
// classes are bound is free.
std::shared_ptr<smd::Trial> to_trial(nb::handle value);
// The numbers of tensors; SMDebugValueError for a name that the snapshot does not know.
std::vector<uint32_t> tensor_numbers(const smd::Snapshot& snapshot,
                                     const std::vector<std::string>& names);

}  // namespace smdebug
