#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/small_run.h"

namespace smd::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class RepackCommand : public ProgramTestCase {
 protected:
  const std::string root = folder + "/run";
  const std::string packed = folder + "/packed";
  SmallRun recorded{storage::local_storage(root)};
};

TEST_F(RepackCommand, a_run_becomes_packed_and_comes_back) {
  recorded.finished();
  EXPECT_EQ(run({"repack", root, packed, "--layout", "packed"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("copied 3 steps, 1 worker, 6 values, 0 reductions, 3 shapes"));
  EXPECT_THAT(out, EndsWith("the copy is equal, bit for bit\n"));
  EXPECT_TRUE(std::filesystem::exists(packed + "/v2/log"));
  EXPECT_EQ(run({"repack", packed, folder + "/back", "--layout", "original", "--json"}), 0) << err;
  EXPECT_EQ(json()["verified"], true);
  EXPECT_EQ(json()["ended"], true);
  EXPECT_EQ(json()["layout"], "original");
  EXPECT_EQ(run({"diff", root, folder + "/back"}), 0) << out;
}

TEST_F(RepackCommand, the_comparison_can_be_left_out) {
  recorded.finished();
  EXPECT_EQ(run({"repack", root, packed, "--layout", "packed", "--no-verify", "--json"}), 0) << err;
  EXPECT_EQ(json()["verified"], false);
}

TEST_F(RepackCommand, wrong_places_and_layouts_are_named) {
  recorded.finished();
  EXPECT_EQ(run({"repack", root, root, "--layout", "packed"}), 2);
  EXPECT_THAT(err, HasSubstr("The destination must be empty, but holds"));
  std::ofstream(folder + "/file") << "x";
  EXPECT_EQ(run({"repack", root, folder + "/file", "--layout", "packed"}), 2);
  EXPECT_THAT(err, HasSubstr("is a file"));
  EXPECT_EQ(run({"repack", root, packed, "--layout", "pakced"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'packed'?"));
  EXPECT_EQ(run({"repack", root, packed}), 2);
  EXPECT_THAT(err, HasSubstr("--layout"));
  EXPECT_EQ(run({"repack", folder + "/none", packed, "--layout", "packed"}), 2);
  EXPECT_THAT(err, HasSubstr("There is no directory"));
  EXPECT_FALSE(std::filesystem::exists(packed));
}

TEST_F(RepackCommand, a_run_that_goes_on_is_told_of) {
  recorded.collections();
  recorded.step(0);
  EXPECT_EQ(run({"repack", root, packed, "--layout", "packed"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("the run has not ended"));
}

}  // namespace
}  // namespace smd::cli
