#include "smd/cli/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "smd/base/nearest.h"
#include "smd/cli/manual.h"
#include "smd/cli/options.h"

namespace smd::cli {
namespace {

ExitCode refuse(Terminal& terminal, std::string_view sentence) {
  terminal.say(sentence);
  return ExitCode::usage;
}

std::string unknown_option(std::string_view whose, std::string_view typed,
                           const std::vector<OptionHelp>& options) {
  std::vector<std::string> names;
  for (const OptionHelp& option : options) {
    if (!option.is_positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  const std::string_view name = typed.substr(0, typed.find('='));
  return fmt::format("'{}' has no option '{}'.{}", whose, name, did_you_mean(name, names));
}

// What is wrong with arguments that a command did not expect; "" if nothing is.
std::string complaint_about_rest(const Command& command, const CLI::App& app) {
  const std::string whose = fmt::format("smdebug {}", command.name);
  for (const std::string& word : app.remaining()) {
    if (word == "--") continue;
    if (word.starts_with('-')) return unknown_option(whose, word, describe_options(command));
    return fmt::format("'{}' does not expect '{}'. Usage: {}", whose, word, usage_line(command));
  }
  return "";
}

// The words with "--" before the first that is no option of the command and no value of one.
std::vector<std::string> with_program_apart(const Command& command,
                                            std::vector<std::string> words) {
  const auto options = describe_options(command);
  const auto takes_value = [&](const std::string& word) {
    return std::any_of(options.begin(), options.end(), [&](const OptionHelp& option) {
      return !option.is_positional && !option.value.empty() &&
             std::find(option.names.begin(), option.names.end(), word) != option.names.end();
    });
  };
  size_t at = 0;
  // `-m module` is a program, too: Python's.
  while (at < words.size() && words[at].starts_with('-') && words[at] != "--" &&
         words[at] != "-m") {
    at += takes_value(words[at]) ? 2 : 1;
  }
  if (at < words.size() && words[at] != "--") {
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), "--");
  }
  return words;
}

class Program final {
 public:
  Program(Terminal& terminal, const ProgramOptions& options)
      : terminal_(terminal), options_(options) {}

  ExitCode run(std::span<const std::string> arguments) {
    // Options that stand before the command.
    size_t at = 0;
    for (; at < arguments.size() && arguments[at].starts_with('-'); ++at) {
      const std::string& word = arguments[at];
      if (word == "-h" || word == "--help") {
        terminal_.out << program_help();
        return ExitCode::well;
      }
      if (word == "--version") {
        terminal_.out << "smdebug " << program_version() << '\n';
        return ExitCode::well;
      }
      if (word == "--json" || word.starts_with("--color=")) {
        before_.push_back(word);
      } else if (word == "--color" && at + 1 < arguments.size()) {
        before_.push_back(word);
        before_.push_back(arguments[++at]);
      } else {
        return refuse(terminal_, unknown_option("smdebug", word, describe_program_options()));
      }
    }
    if (at == arguments.size()) {
      terminal_.err << program_help();
      return ExitCode::usage;
    }
    const Command* command = find_command(arguments[at]);
    if (command == nullptr) return refuse_command(arguments[at]);
    return run_command(*command, arguments.subspan(at + 1));
  }

 private:
  ExitCode refuse_command(const std::string& name) {
    std::vector<std::string> names;
    for (const Command* command : commands()) names.emplace_back(command->name);
    return refuse(terminal_, fmt::format("There is no command '{}'.{} 'smdebug --help' lists them.",
                                         name, did_you_mean(name, names)));
  }

  ExitCode run_command(const Command& command, std::span<const std::string> rest) {
    std::vector<std::string> words = before_;
    words.insert(words.end(), rest.begin(), rest.end());
    if (command.runs_program) words = with_program_apart(command, std::move(words));
    PreparedCommand prepared = prepare(command);
    try {
      std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants it
      prepared.app->parse(reversed);
    } catch (const CLI::CallForHelp&) {
      terminal_.out << command_help(command);
      return ExitCode::well;
    } catch (const CLI::ParseError& error) {
      const std::string complaint = complaint_about_rest(command, *prepared.app);
      return refuse(terminal_, complaint.empty() ? sentence_of(command, error) : complaint);
    }
    const std::string complaint = complaint_about_rest(command, *prepared.app);
    if (!complaint.empty()) return refuse(terminal_, complaint);

    terminal_.color = wants_color(prepared.common->color_choice(), terminal_.out_is_terminal);
    words.insert(words.begin(), std::string(command.name));
    const Context context{.terminal = terminal_,
                          .json = prepared.common->json,
                          .clock = options_.clock,
                          .hand_over = [&] { return options_.hand_over(words); }};
    const Result<ExitCode> result =
        prepared.invocation ? prepared.invocation->run(context) : context.hand_over();
    terminal_.out << std::flush;
    return result.ok() ? *result : refuse(terminal_, result.error().message);
  }

  static std::string sentence_of(const Command& command, const CLI::ParseError& error) {
    std::string text = error.what();
    if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
      return fmt::format("{}. Usage: {}", text, usage_line(command));
    }
    if (!text.empty() && text.back() != '.' && text.back() != '?') text += '.';
    return text;
  }

  Terminal& terminal_;
  const ProgramOptions& options_;
  std::vector<std::string> before_;
};

}  // namespace

ExitCode run_program(std::span<const std::string> arguments, Terminal& terminal,
                     const ProgramOptions& options) {
  return Program(terminal, options).run(arguments);
}

}  // namespace smd::cli
