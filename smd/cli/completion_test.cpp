#include "smd/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/command.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;

TEST(Completion, every_script_knows_every_command) {
  for (std::string_view shell : completion_shells()) {
    const auto script = completion_script(shell);
    ASSERT_TRUE(script.ok());
    for (const Command* command : commands()) {
      EXPECT_THAT(*script, HasSubstr(std::string(command->name))) << shell;
    }
    EXPECT_THAT(*script, HasSubstr("repair")) << shell;
    EXPECT_THAT(*script, HasSubstr("auto always never")) << shell;
  }
}

TEST(Completion, another_shell_gets_the_nearest_choice) {
  const auto script = completion_script("csh");
  ASSERT_FALSE(script.ok());
  EXPECT_THAT(script.error().message, HasSubstr("Did you mean 'zsh'?"));
}

}  // namespace
}  // namespace smd::cli
