#pragma once

// The one place where core errors become Python exceptions.

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smdebug {

namespace nb = nanobind;

// The message as a str: bytes that are no UTF-8, such as those of a file's name, become \\xNN.
nb::object to_text(std::string_view message);
// Raises the class of this name from smdebug.exceptions (or builtins).
[[noreturn]] void raise(const char* class_name, std::string_view message);
// Raises what the error's code stands for.
[[noreturn]] void raise(const smd::Error& error);

inline void check(smd::Status status) {
  if (!status.ok()) raise(status.error());
}

template <typename T>
T check(smd::Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}

}  // namespace smdebug
