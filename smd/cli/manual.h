#pragma once

// Everything that explains the program, written from the constants of the commands: --help, the
// manual page, and the reference page of the documentation. Pure functions.

#include <string>

#include "smd/cli/command.h"

namespace smd::cli {

// What `smdebug --help` prints.
std::string program_help();
// What `smdebug <command> --help` prints.
std::string command_help(const Command& command);
// The manual page smdebug(1), for man.
std::string manual_page();
// docs/reference/cli.md.
std::string markdown_page();

}  // namespace smd::cli
