#include "smd/cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "smd/cli/manual.h"

namespace smd::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class ProgramTest : public ProgramTestCase {};

TEST_F(ProgramTest, help_and_version_are_answers) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_EQ(out, program_help());
  EXPECT_EQ(run({"-h"}), 0);
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(out, "smdebug " + std::string(program_version()) + "\n");
  EXPECT_EQ(run({"verify", "--help"}), 0);
  EXPECT_EQ(out, command_help(*find_command("verify")));
  EXPECT_EQ(err, "");
}

TEST_F(ProgramTest, no_command_is_wrong_usage) {
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(err, program_help());
  EXPECT_EQ(out, "");
}

TEST_F(ProgramTest, wrong_words_get_the_nearest_right_ones) {
  EXPECT_EQ(run({"verfy"}), 2);
  EXPECT_THAT(err, HasSubstr("There is no command 'verfy'. Did you mean 'verify'?"));
  EXPECT_EQ(run({"--jsn"}), 2);
  EXPECT_THAT(err, HasSubstr("'smdebug' has no option '--jsn'. Did you mean '--json'?"));
  EXPECT_EQ(run({"verify", "x", "--reapir=1"}), 2);
  EXPECT_THAT(err,
              HasSubstr("'smdebug verify' has no option '--reapir'. Did you mean '--repair'?"));
  EXPECT_EQ(run({"verify", "--color", "allways", "x"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'always'?"));
  EXPECT_EQ(out, "");
}

TEST_F(ProgramTest, missing_and_surplus_arguments_are_named) {
  EXPECT_EQ(run({"verify"}), 2);
  EXPECT_THAT(err, HasSubstr("RUN is required. Usage: smdebug verify [options] RUN"));
  EXPECT_EQ(run({"verify", "a", "b"}), 2);
  EXPECT_THAT(err, HasSubstr("does not expect 'b'"));
}

TEST_F(ProgramTest, an_error_is_one_sentence_in_json_mode_too) {
  for (const char* flag : {"--json", "--color=never"}) {
    EXPECT_EQ(run({"verify", folder + "/nowhere", flag}), 2);
    EXPECT_EQ(out, "");
    EXPECT_THAT(err, StartsWith("smdebug: There is no directory '"));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1);
  }
}

TEST_F(ProgramTest, hostile_words_do_not_steer_the_terminal) {
  EXPECT_EQ(run({"\x1b[2J"}), 2);
  EXPECT_EQ(err.find('\x1b'), std::string::npos);
}

TEST_F(ProgramTest, common_options_may_stand_before_the_command) {
  EXPECT_EQ(run({"--json", "--color", "never", "help"}), 0);
  EXPECT_EQ(json()["version"], std::string(program_version()));
}

TEST_F(ProgramTest, commands_in_python_are_handed_over_once_their_arguments_are_right) {
  EXPECT_EQ(run({"--json", "environment", "--color=never"}), 0);
  EXPECT_THAT(handed_over, ElementsAre("environment", "--json", "--color=never"));
  handed_over.clear();
  EXPECT_EQ(run({"environment", "--jsn"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean '--json'?"));
  EXPECT_EQ(run({"environment", "--help"}), 0);
  EXPECT_THAT(handed_over, ElementsAre());
}

}  // namespace
}  // namespace smd::cli
