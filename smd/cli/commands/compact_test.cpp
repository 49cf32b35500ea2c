#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/golden_folder.h"

namespace smd::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CompactCommand : public ProgramTestCase {
 protected:
  const std::string hook = golden_folder() + "/hook";
};

TEST_F(CompactCommand, right_arguments_are_handed_over_to_python) {
  EXPECT_EQ(run({"compact", hook, "--parquet", folder + "/tables"}), 0) << err;
  EXPECT_THAT(handed_over, ElementsAre("compact", hook, "--parquet", folder + "/tables"));
}

TEST_F(CompactCommand, wrong_ones_are_refused_before) {
  EXPECT_EQ(run({"compact", hook}), 2);
  EXPECT_THAT(err, HasSubstr("--parquet"));
  EXPECT_EQ(run({"compact", hook, "--parquet", "s3://bucket/tables"}), 2);
  EXPECT_THAT(err, HasSubstr("is no local directory"));
  std::ofstream(folder + "/file") << "x";
  EXPECT_EQ(run({"compact", hook, "--parquet", folder + "/file"}), 2);
  EXPECT_THAT(err, HasSubstr("is a file"));
  EXPECT_EQ(run({"compact", folder + "/none", "--parquet", folder}), 2);
  EXPECT_THAT(err, HasSubstr("There is no directory"));
  EXPECT_THAT(handed_over, IsEmpty());
}

}  // namespace
}  // namespace smd::cli
