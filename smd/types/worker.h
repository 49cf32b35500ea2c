#pragma once

// Worker names as they stand in file names. Pure functions.

#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd {

// "worker_<rank>".
std::string worker_name(int rank);

// A device string such as "/job:worker/task:1/device:GPU:0" in file names: '/' → '_', ':' → '-'.
// Ordinary names are returned as they are.
std::string worker_to_file_name(std::string_view worker);

// The inverse: applied if and only if the text begins with '_'.
std::string worker_from_file_name(std::string_view text);

// Error if a worker name cannot be part of a file name: empty, with NUL, or '/' anywhere but in a
// device string that begins with '/'.
Status check_worker(std::string_view worker);

}  // namespace smd
