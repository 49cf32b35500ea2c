#include "smd/cli/command.h"

#include <algorithm>

namespace smd::cli {

namespace command_list {
#define SMD_CATALOG_ENTRY(stem) extern const Command stem;
#include "smd/cli/commands_catalog.inc"
#undef SMD_CATALOG_ENTRY
}  // namespace command_list

namespace {

#define SMD_CATALOG_ENTRY(stem) &command_list::stem,
constexpr const Command* kCommands[] = {
#include "smd/cli/commands_catalog.inc"
};
#undef SMD_CATALOG_ENTRY

constexpr ExitCodeHelp kExitCodes[] = {
    {ExitCode::well, "all is well"},
    {ExitCode::found, "the command found differences or damage"},
    {ExitCode::usage,
     "wrong usage, or the run cannot be opened: missing, empty, or something else"},
    {ExitCode::interrupted, "interrupted with Ctrl-C"},
};

}  // namespace

std::span<const ExitCodeHelp> exit_codes() { return kExitCodes; }

std::span<const Command* const> commands() { return kCommands; }

const Command* find_command(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kCommands), std::end(kCommands),
                   [&](const Command* command) { return command->name == name; });
  return found == std::end(kCommands) ? nullptr : *found;
}

std::string_view program_version() { return SMD_PROGRAM_VERSION; }

}  // namespace smd::cli
