#pragma once

// The commands of the program `smdebug`. Each lives in one file of commands/, named like its
// constant; the build collects them, so adding a file adds a command. Help, manual page, completion
// and the reference page come from the same constants. Immutable table, thread-safe.

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/cli/terminal.h"

namespace CLI {
class App;
}  // namespace CLI

namespace smd::cli {

enum class ExitCode : int {
  well = 0,
  found = 1,          // differences or damage
  usage = 2,          // the command could not be carried out
  interrupted = 130,  // Ctrl-C
};

struct ExitCodeHelp {
  ExitCode code;
  std::string_view about;
};
std::span<const ExitCodeHelp> exit_codes();

// What a command gets besides its own options. Borrows the terminal.
struct Context {
  Terminal& terminal;
  bool json = false;  // one document on out, or one per line for commands that stream
  std::shared_ptr<const Clock> clock = system_clock();
  // Leaves the rest to the command of the same name in smdebug.cli, with the same arguments.
  std::function<Result<ExitCode>()> hand_over;
};

// The options of one call and the work itself. Made by `prepare`, filled by the parser, run once.
class Invocation {
 public:
  virtual ~Invocation() = default;
  // Prints to the context's terminal. An error is printed by the caller and becomes exit code 2.
  virtual Result<ExitCode> run(const Context& context) = 0;
};

struct Example {
  std::string_view line;   // what to type, after "smdebug "
  std::string_view about;  // what it does
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line without a full stop
  std::string_view details;  // sentences
  std::span<const Example> examples;
  // Adds the command's options; --json, --color and --help are there already. The options write to
  // the invocation that is returned. nullptr: the work is done by smdebug.cli in Python, to which
  // the arguments are handed over once they have proved right.
  std::unique_ptr<Invocation> (*prepare)(CLI::App& options) = nullptr;
  // The first word that is no option of ours, and all after it, belong to another program: they are
  // positionals, whatever they look like.
  bool runs_program = false;
};

// All commands, sorted by file name.
std::span<const Command* const> commands();

// nullptr: no such command.
const Command* find_command(std::string_view name);

std::string_view program_version();

}  // namespace smd::cli
