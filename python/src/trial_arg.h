#pragma once

// A run as an argument: the core's Trial, or the path of one. The GIL is held.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <string>

#include "smd/trial/trial.h"

namespace smdebug {

namespace nb = nanobind;

// SMDebugTypeError for anything but the core's Trial. A handle, so that the order in which the
// classes are bound is free.
std::shared_ptr<smd::Trial> to_trial(nb::handle value);
// Lets other Python threads run meanwhile.
std::shared_ptr<smd::Trial> open_trial(const std::string& path);

}  // namespace smdebug
