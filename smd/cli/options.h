#pragma once

// Options of commands: the ones that every command has, options with a fixed choice of values, and
// a description of all of them for help, manual and completion. One thread at a time.

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/cli/command.h"

namespace smd::cli {

// What every command accepts.
struct CommonOptions {
  bool json = false;
  std::string color = "auto";

  ColorChoice color_choice() const;
};

// An option or, without dashes, a positional that takes one of `choices`; anything else is refused
// with the nearest of them.
CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        std::span<const std::string_view> choices, const std::string& about);

// A command that is ready to parse its arguments.
struct PreparedCommand {
  std::unique_ptr<CLI::App> app;
  std::unique_ptr<CommonOptions> common;   // written by the parser
  std::unique_ptr<Invocation> invocation;  // nullptr: in Python
};
PreparedCommand prepare(const Command& command);

// One option as people see it.
struct OptionHelp {
  std::vector<std::string> names;  // "-h", "--help"; of a positional its name alone
  bool is_positional = false;
  bool is_required = false;
  bool is_repeated = false;
  std::string value;                 // "FILE", "bash|zsh|fish"; empty: a flag
  std::vector<std::string> choices;  // if only these are allowed
  std::string about;
};
// In the order in which they were added, common ones last.
std::vector<OptionHelp> describe_options(const Command& command);
// "smdebug verify [options] RUN"
std::string usage_line(const Command& command);

// The common options, as the program itself accepts them before the command.
std::vector<OptionHelp> describe_program_options();

}  // namespace smd::cli
