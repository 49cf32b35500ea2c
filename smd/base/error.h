#pragma once

// The error value that every fallible core function returns inside a Result.
// Immutable. Only python/src/errors.cpp maps codes to exception classes.

#include <string>
#include <string_view>
#include <utility>

namespace smd {

enum class ErrorCode {
  invalid_argument,  // the caller's value is wrong
  not_found,         // the named thing does not exist
  not_yet,           // it may exist later
  end_of_data,       // nothing more will come
  truncated,         // the rest is not there (yet)
  corrupt,           // the bytes contradict themselves
  unsupported,       // valid, but this version or format cannot do it
  io,                // the operating system or the network said no
  closed,            // the object was closed before
  internal,          // a bug of ours
};

std::string_view name_of(ErrorCode code);

// A code to act on and a full sentence for people: the value that was wrong, paths last.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
};

}  // namespace smd
