#include "smd/cli/command.h"

namespace smd::cli::command_list {
namespace {

constexpr Example kExamples[] = {
    {"environment", "what to add to a report of a problem"},
};

}  // namespace

// The work is done in python/smdebug/cli.py: only the interpreter knows what it can import.
extern const Command environment;
const Command environment = {
    .name = "environment",
    .summary = "Shows the versions and the variables that smdebug works with",
    .examples = kExamples,
    .prepare = [](CLI::App&) -> std::unique_ptr<Invocation> { return nullptr; },
};

}  // namespace smd::cli::command_list
