#pragma once

// Commands that are written in Python: the program hands its arguments over to the interpreter that
// stands beside it, or else to the first python3 on the PATH.

#include <span>
#include <string>
#include <vector>

#include "smd/base/result.h"

namespace smd::cli {

// <folder of the program>/python3 if it can be executed, else "python3".
std::string python_interpreter(const std::string& program);

// {interpreter, "-m", "smdebug.cli", arguments...}
std::vector<std::string> python_command_line(std::string interpreter,
                                             std::span<const std::string> arguments);

// Replaces this process; returns only with an error.
Error hand_over_to_python(std::span<const std::string> arguments);

}  // namespace smd::cli
