#pragma once

// The program as a function: arguments and streams in, exit code out. One thread at a time.

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "smd/base/clock.h"
#include "smd/cli/command.h"
#include "smd/cli/terminal.h"

namespace smd::cli {

struct ProgramOptions {
  std::shared_ptr<const Clock> clock = system_clock();
  // Runs a command that is written in Python; the first argument is its name. An error means that
  // it could not be started.
  std::function<Result<ExitCode>(std::span<const std::string> arguments)> hand_over;
};

// `arguments` without the program's name. Errors are printed as one sentence on terminal.err.
ExitCode run_program(std::span<const std::string> arguments, Terminal& terminal,
                     const ProgramOptions& options);

}  // namespace smd::cli
