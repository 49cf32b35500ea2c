#include "smd/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "smd/base/nearest.h"
#include "smd/cli/options.h"

namespace smd::cli {
namespace {

constexpr std::string_view kShells[] = {"bash", "fish", "zsh"};

// For single quotes of a shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::vector<std::string> flags_of(const std::vector<OptionHelp>& options) {
  std::vector<std::string> out;
  for (const OptionHelp& option : options) {
    if (!option.is_positional) out.insert(out.end(), option.names.begin(), option.names.end());
  }
  return out;
}

std::vector<std::string> command_names() {
  std::vector<std::string> out;
  for (const Command* command : commands()) out.emplace_back(command->name);
  return out;
}

// The choices after an option with a fixed set of values.
std::string bash_values(std::string_view command, const std::vector<OptionHelp>& options) {
  std::string out;
  for (const OptionHelp& option : options) {
    if (option.is_positional || option.choices.empty()) continue;
    for (const std::string& name : option.names) {
      out += fmt::format("    {}:{}) words={} ;;\n", command, name,
                         shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
    }
  }
  return out;
}

std::string bash_case(std::string_view command, const std::vector<std::string>& words,
                      const std::vector<OptionHelp>& options) {
  return fmt::format("      {}) words={} options={} ;;\n",
                     command.empty() ? std::string_view("''") : command,
                     shell_quoted(fmt::format("{}", fmt::join(words, " "))),
                     shell_quoted(fmt::format("{}", fmt::join(flags_of(options), " "))));
}

std::string bash_script() {
  const auto program_options = describe_program_options();
  std::string values = bash_values("", program_options);
  std::string arguments = bash_case("", command_names(), program_options);
  for (const Command* command : commands()) {
    const auto options = describe_options(*command);
    values += bash_values(command->name, options);
    std::vector<std::string> words;
    for (const OptionHelp& option : options) {
      if (option.is_positional) {
        words.insert(words.end(), option.choices.begin(), option.choices.end());
      }
    }
    arguments += bash_case(command->name, words, options);
  }
  return fmt::format(
      R"(# Completion of smdebug for bash: source <(smdebug completion bash)
_smdebug() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
  local command= words= options= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in
      --color) ((i++)) ;;
      -*) ;;
      *) command=${{COMP_WORDS[i]}}; break ;;
    esac
  done
  case $command:$prev in
{}    *) case $command in
{}    esac ;;
  esac
  if [[ $cur == -* ]]; then words=$options; fi
  # Nothing here means that the shell completes paths.
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}}
complete -o bashdefault -o default -F _smdebug smdebug
)",
      values, arguments);
}

std::string zsh_escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_arguments(const std::vector<OptionHelp>& options) {
  std::string out;
  const auto action = [](const OptionHelp& option) {
    return option.choices.empty() ? std::string("_files")
                                  : fmt::format("({})", fmt::join(option.choices, " "));
  };
  for (const OptionHelp& option : options) {
    if (option.is_positional) continue;
    for (const std::string& name : option.names) {
      std::string spec = fmt::format("{}[{}]", name, zsh_escaped(option.about));
      if (!option.value.empty()) spec += ":value:" + action(option);
      out += " " + shell_quoted(spec);
    }
  }
  for (const OptionHelp& option : options) {
    if (option.is_positional) {
      out += " " + shell_quoted(fmt::format("*:{}:{}", option.names[0], action(option)));
    }
  }
  return out;
}

std::string zsh_script() {
  std::string names;
  std::string cases;
  for (const Command* command : commands()) {
    names += " " + shell_quoted(fmt::format("{}:{}", command->name, zsh_escaped(command->summary)));
    cases += fmt::format("        {}) _arguments{} ;;\n", command->name,
                         zsh_arguments(describe_options(*command)));
  }
  return fmt::format(
      R"(#compdef smdebug
# Completion of smdebug for zsh: put this into a folder of $fpath as _smdebug.
_smdebug() {{
  local -a commands
  local state
  commands=({} )
  _arguments -C{} '1: :->command' '*:: :->argument'
  case $state in
    command) _describe 'command' commands ;;
    argument)
      case $words[1] in
{}      esac ;;
  esac
}}
compdef _smdebug smdebug
# As a file of $fpath this text is the first call of the function.
if [ "$funcstack[1]" = "_smdebug" ]; then _smdebug "$@"; fi
)",
      names, zsh_arguments(describe_program_options()), cases);
}

void append_fish(std::string& out, const std::string& condition,
                 const std::vector<OptionHelp>& options) {
  for (const OptionHelp& option : options) {
    std::string line = fmt::format("complete -c smdebug -n {}", shell_quoted(condition));
    if (option.is_positional) {
      if (option.choices.empty()) continue;
      line += " -f";
    }
    for (const std::string& name : option.names) {
      if (option.is_positional) break;
      line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    if (!option.choices.empty()) {
      line += option.is_positional ? "" : " -x";
      line += " -a " + shell_quoted(fmt::format("{}", fmt::join(option.choices, " ")));
    } else if (!option.value.empty()) {
      line += " -r";
    }
    out += fmt::format("{} -d {}\n", line, shell_quoted(option.about));
  }
}

std::string fish_script() {
  std::string out =
      "# Completion of smdebug for fish: smdebug completion fish | source\n"
      "complete -c smdebug -n __fish_use_subcommand -f\n";
  append_fish(out, "__fish_use_subcommand", describe_program_options());
  for (const Command* command : commands()) {
    out += fmt::format("complete -c smdebug -n __fish_use_subcommand -a {} -d {}\n", command->name,
                       shell_quoted(command->summary));
  }
  for (const Command* command : commands()) {
    append_fish(out, fmt::format("__fish_seen_subcommand_from {}", command->name),
                describe_options(*command));
  }
  return out;
}

}  // namespace

std::span<const std::string_view> completion_shells() { return kShells; }

Result<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return bash_script();
  if (shell == "fish") return fish_script();
  if (shell == "zsh") return zsh_script();
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is not a shell that can be taught; there are {}.{}", shell,
                           fmt::join(kShells, ", "), did_you_mean(shell, kShells))};
}

}  // namespace smd::cli
