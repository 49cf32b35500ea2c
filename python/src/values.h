#pragma once

// Loosely typed Python values as the core's types. Raise SMDebugTypeError or SMDebugValueError that
// name the value. The GIL is held.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json.h"
#include "smd/types/mode.h"

namespace smdebug {

namespace nb = nanobind;

// An int, a NumPy integer, or a string of digits. `name` is the argument in messages.
int64_t to_int(nb::handle value, const char* name);
std::optional<int64_t> to_optional_int(nb::handle value, const char* name);
// Any iterable of whole numbers (list, tuple, range, array); not a string.
std::vector<int64_t> to_int_list(nb::handle value, const char* name);
// A string is one item; else an iterable of strings, nested as deep as it likes. None: no items.
std::vector<std::string> to_strings(nb::handle value, const char* name);
// Like to_strings; a string is split at its commas.
std::vector<std::string> to_comma_list(nb::handle value, const char* name);
// A tensor's name; it lives as long as the Python string.
std::string_view to_name(nb::handle value);
bool to_bool(nb::handle value, const char* name);

// Through Python's json module.
nb::object to_python(const smd::Json& json);
smd::Json to_json(nb::handle value, const char* name);

// repr(value), shortened.
std::string describe(nb::handle value);

}  // namespace smdebug
