#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"

namespace smd::cli {
namespace {

class EnvironmentCommand : public ProgramTestCase {};

TEST_F(EnvironmentCommand, is_left_to_python) {
  EXPECT_EQ(run({"environment"}), 0);
  EXPECT_THAT(handed_over, testing::ElementsAre("environment"));
  EXPECT_EQ(run({"environment", "surplus"}), 2);
}

}  // namespace
}  // namespace smd::cli
