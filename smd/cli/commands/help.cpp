#include <fmt/format.h>

#include <ostream>

#include "smd/base/nearest.h"
#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/manual.h"
#include "smd/cli/options.h"

namespace smd::cli::command_list {
namespace {

Json describe(const std::vector<OptionHelp>& options) {
  Json out = Json::array();
  for (const OptionHelp& option : options) {
    out.push_back({{"names", option.names},
                   {"positional", option.is_positional},
                   {"required", option.is_required},
                   {"value", option.value},
                   {"choices", option.choices},
                   {"about", option.about}});
  }
  return out;
}

Json describe_all() {
  Json list = Json::array();
  for (const Command* command : commands()) {
    list.push_back({{"name", command->name},
                    {"summary", command->summary},
                    {"usage", usage_line(*command)},
                    {"options", describe(describe_options(*command))}});
  }
  return {{"version", program_version()},
          {"options", describe(describe_program_options())},
          {"commands", std::move(list)}};
}

class Help final : public Invocation {
 public:
  explicit Help(CLI::App& options) {
    options.add_option("COMMAND", command_, "the command to explain; all if none is named")
        ->type_name("");
    options.add_flag("--man", man_, "print the manual page, for man");
    options.add_flag("--markdown", markdown_, "print the reference page of the documentation");
  }

  Result<ExitCode> run(const Context& context) override {
    std::ostream& out = context.terminal.out;
    if (context.json) {
      write_json(out, describe_all());
    } else if (man_ || markdown_) {
      out << (man_ ? manual_page() : markdown_page());
    } else if (command_.empty()) {
      out << program_help();
    } else if (const Command* command = find_command(command_)) {
      out << command_help(*command);
    } else {
      std::vector<std::string> names;
      for (const Command* known : commands()) names.emplace_back(known->name);
      return Error{ErrorCode::invalid_argument, fmt::format("There is no command '{}'.{}", command_,
                                                            did_you_mean(command_, names))};
    }
    return ExitCode::well;
  }

 private:
  std::string command_;
  bool man_ = false;
  bool markdown_ = false;
};

constexpr Example kExamples[] = {
    {"help verify", "explain the command verify"},
    {"help --man > smdebug.1", "write the manual page"},
};

}  // namespace

extern const Command help;
const Command help = {
    .name = "help",
    .summary = "Explains the program or a command",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Help>(options);
    },
};

}  // namespace smd::cli::command_list
