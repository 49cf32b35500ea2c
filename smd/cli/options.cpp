#include "smd/cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "smd/base/nearest.h"

namespace smd::cli {
namespace {

constexpr std::string_view kColors[] = {"auto", "always", "never"};

void add_common(CLI::App& app, CommonOptions& common) {
  app.add_flag("--json", common.json, "print JSON for programs");
  add_choice(app, "--color", common.color, kColors, "when to use colours; NO_COLOR is respected");
  app.set_help_flag("-h,--help", "explain this and exit");
}

OptionHelp describe(const CLI::Option& option) {
  OptionHelp help;
  help.is_positional = option.get_positional() && !option.nonpositional();
  help.is_required = option.get_required();
  help.is_repeated = option.get_expected_max() > 1;
  help.about = option.get_description();
  if (help.is_positional) {
    help.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) help.value = option.get_type_name();
  if (help.value.find('|') != std::string::npos) {
    help.choices = CLI::detail::split(help.value, '|');
  }
  return help;
}

std::vector<OptionHelp> describe(CLI::App& app) {
  std::vector<OptionHelp> out;
  std::vector<OptionHelp> common;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool is_common =
        name == "--help" || name == "-h,--help" || name == "--json" || name == "--color";
    (is_common ? common : out).push_back(describe(*option));
  }
  out.insert(out.end(), common.begin(), common.end());
  return out;
}

}  // namespace

ColorChoice CommonOptions::color_choice() const {
  return color == "always"  ? ColorChoice::always
         : color == "never" ? ColorChoice::never
                            : ColorChoice::automatic;
}

CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        std::span<const std::string_view> choices, const std::string& about) {
  const std::vector<std::string> known(choices.begin(), choices.end());
  return app.add_option(names, value, about)
      ->type_name(fmt::format("{}", fmt::join(known, "|")))
      ->check([known](const std::string& text) {
        if (std::find(known.begin(), known.end(), text) != known.end()) return std::string();
        return fmt::format("'{}' is not one of {}.{}", text, fmt::join(known, ", "),
                           did_you_mean(text, known));
      });
}

PreparedCommand prepare(const Command& command) {
  PreparedCommand out;
  out.app = std::make_unique<CLI::App>("", fmt::format("smdebug {}", command.name));
  out.common = std::make_unique<CommonOptions>();
  add_common(*out.app, *out.common);
  // What nobody expects is reported by us, with the nearest choice.
  out.app->allow_extras();
  out.invocation = command.prepare(*out.app);
  return out;
}

std::vector<OptionHelp> describe_options(const Command& command) {
  return describe(*prepare(command).app);
}

std::string usage_line(const Command& command) {
  std::string line = fmt::format("smdebug {} [options]", command.name);
  for (const OptionHelp& option : describe_options(command)) {
    if (!option.is_positional) continue;
    const std::string name = option.choices.empty()
                                 ? option.names[0]
                                 : fmt::format("{}", fmt::join(option.choices, "|"));
    const std::string word = name + (option.is_repeated ? "..." : "");
    line += option.is_required ? " " + word : " [" + word + "]";
  }
  return line;
}

std::vector<OptionHelp> describe_program_options() {
  CLI::App app;
  CommonOptions common;
  bool version = false;
  add_common(app, common);
  app.add_flag("--version", version, "print the version and exit");
  return describe(app);
}

}  // namespace smd::cli
