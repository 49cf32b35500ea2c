#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "smd/cli/manual.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;

class HelpCommand : public ProgramTestCase {};

TEST_F(HelpCommand, explains_all_or_one) {
  EXPECT_EQ(run({"help"}), 0);
  EXPECT_EQ(out, program_help());
  EXPECT_EQ(run({"help", "verify"}), 0);
  EXPECT_EQ(out, command_help(*find_command("verify")));
  EXPECT_EQ(run({"help", "--man"}), 0);
  EXPECT_EQ(out, manual_page());
  EXPECT_EQ(run({"help", "--markdown"}), 0);
  EXPECT_EQ(out, markdown_page());
}

TEST_F(HelpCommand, an_unknown_command_gets_the_nearest) {
  EXPECT_EQ(run({"help", "verfy"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'verify'?"));
}

TEST_F(HelpCommand, programs_get_every_command_with_its_options) {
  EXPECT_EQ(run({"help", "--json"}), 0);
  const Json document = json();
  ASSERT_EQ(document["commands"].size(), commands().size());
  EXPECT_EQ(document["commands"][0]["name"], std::string(commands()[0]->name));
  EXPECT_GT(document["commands"][0]["options"].size(), 2u);
}

}  // namespace
}  // namespace smd::cli
