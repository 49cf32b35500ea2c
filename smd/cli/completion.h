#pragma once

// Scripts that teach a shell to complete the program's commands, options and paths, written from
// the constants of the commands. Pure functions.

#include <span>
#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd::cli {

// "bash", "fish", "zsh".
std::span<const std::string_view> completion_shells();

// invalid_argument for another shell, with the nearest choice.
Result<std::string> completion_script(std::string_view shell);

}  // namespace smd::cli
