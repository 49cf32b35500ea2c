#include "smd/cli/command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "smd/cli/options.h"

namespace smd::cli {
namespace {

TEST(Command, every_command_is_complete) {
  std::set<std::string_view> names;
  for (const Command* command : commands()) {
    EXPECT_TRUE(names.insert(command->name).second) << command->name;
    EXPECT_FALSE(command->summary.empty()) << command->name;
    EXPECT_NE(command->summary.back(), '.') << command->name;
    EXPECT_FALSE(command->examples.empty()) << command->name;
    for (const Example& example : command->examples) {
      EXPECT_TRUE(example.line.starts_with(command->name)) << example.line;
    }
    EXPECT_EQ(find_command(command->name), command);
  }
  EXPECT_GE(names.size(), 4u);
}

// Words as a shell splits them, with single quotes.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words = {""};
  bool quoted = false;
  for (char c : line) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

TEST(Command, every_example_can_be_typed) {
  for (const Command* command : commands()) {
    for (const Example& example : command->examples) {
      // What follows the program itself is the business of a shell.
      const std::string_view line = example.line.substr(0, example.line.find_first_of("|>"));
      std::vector<std::string> words = words_of(line.substr(0, line.find_last_not_of(' ') + 1));
      ASSERT_EQ(words.front(), command->name);
      words.erase(words.begin());
      std::reverse(words.begin(), words.end());
      PreparedCommand prepared = prepare(*command);
      EXPECT_NO_THROW(prepared.app->parse(words)) << example.line;
      EXPECT_TRUE(prepared.app->remaining().empty()) << example.line;
    }
  }
}

TEST(Command, an_unknown_name_is_no_command) { EXPECT_EQ(find_command("dance"), nullptr); }

}  // namespace
}  // namespace smd::cli
