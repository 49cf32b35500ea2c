#include "smd/cli/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "smd/cli/options.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;

TEST(Manual, every_page_names_every_command_option_and_exit_code) {
  const std::string manual = manual_page();
  const std::string markdown = markdown_page();
  for (const Command* command : commands()) {
    const std::string help = command_help(*command);
    EXPECT_THAT(program_help(), HasSubstr("\n  " + std::string(command->name)));
    EXPECT_THAT(markdown, HasSubstr("## " + std::string(command->name)));
    for (const OptionHelp& option : describe_options(*command)) {
      for (const std::string& name : option.names) {
        EXPECT_THAT(help, HasSubstr(name));
        EXPECT_THAT(markdown, HasSubstr(name));
      }
    }
    for (const Example& example : command->examples) {
      EXPECT_THAT(help, HasSubstr("smdebug " + std::string(example.line)));
      EXPECT_THAT(markdown, HasSubstr("smdebug " + std::string(example.line)));
    }
    EXPECT_THAT(help, HasSubstr("130"));
  }
  EXPECT_THAT(manual, HasSubstr(".SS smdebug verify [options] RUN\n"));
  EXPECT_THAT(manual, HasSubstr("\\-\\-repair"));
  EXPECT_THAT(manual, HasSubstr(".SH EXIT STATUS\n"));
}

TEST(Manual, help_fits_eighty_columns) {
  std::string all = program_help();
  for (const Command* command : commands()) all += command_help(*command);
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) {
    // What is to be typed stands in one line, however long.
    EXPECT_TRUE(line.size() <= 80 || line.starts_with("  smdebug ")) << line;
  }
}

TEST(Manual, every_line_of_the_manual_page_is_text_or_a_known_request) {
  std::istringstream lines(manual_page());
  for (std::string line; std::getline(lines, line);) {
    EXPECT_FALSE(line.empty());
    if (!line.starts_with('.')) continue;
    EXPECT_THAT(line.substr(1, 2),
                testing::AnyOf("TH", "SH", "SS", "TP", "PP", "RS", "RE", "nf", "fi", "B ", "I "))
        << line;
  }
}

}  // namespace
}  // namespace smd::cli
