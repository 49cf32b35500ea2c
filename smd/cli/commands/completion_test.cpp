#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/completion.h"
#include "smd/cli/internal/program_test_case.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;

class CompletionCommand : public ProgramTestCase {};

TEST_F(CompletionCommand, prints_the_script_of_the_shell) {
  for (std::string_view shell : completion_shells()) {
    EXPECT_EQ(run({"completion", std::string(shell)}), 0);
    EXPECT_EQ(out, *completion_script(shell));
    EXPECT_EQ(run({"completion", std::string(shell), "--json"}), 0);
    EXPECT_EQ(json()["script"], *completion_script(shell));
  }
}

TEST_F(CompletionCommand, refuses_another_shell) {
  EXPECT_EQ(run({"completion", "csh"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'zsh'?"));
  EXPECT_EQ(run({"completion"}), 2);
}

}  // namespace
}  // namespace smd::cli
