#include "smd/cli/command.h"

#include <gtest/gtest.h>

#include <set>

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

TEST(Command, an_unknown_name_is_no_command) { EXPECT_EQ(find_command("dance"), nullptr); }

}  // namespace
}  // namespace smd::cli
