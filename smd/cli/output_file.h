#pragma once

// A file that a command writes where somebody told it to.

#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd::cli {

// The file appears whole, in place of an older one; folders above it are made. What is no regular
// file, such as a pipe, is written to as it is.
Status write_output_file(const std::string& path, std::string_view content);

}  // namespace smd::cli
