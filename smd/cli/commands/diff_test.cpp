#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class DiffCommand : public ProgramTestCase {
 protected:
  DiffCommand() {
    a.storage = storage::local_storage(root_a);
    b.storage = storage::local_storage(root_b);
    for (PlantedRun* run : {&a, &b}) {
      run->collections();
      run->step(0).floats("w", {1, 2}).scalar("loss", 1);
    }
  }

  const std::string root_a = folder + "/a";
  const std::string root_b = folder + "/b";
  PlantedRun a;
  PlantedRun b;
};

TEST_F(DiffCommand, equal_runs_are_well) {
  EXPECT_EQ(run({"diff", root_a, root_b}), 0) << out << err;
  EXPECT_THAT(out, HasSubstr("compared   1 step, 2 tensors, 2 values (3 elements), 0 reductions"));
  EXPECT_THAT(out, EndsWith("the runs are equal\n"));
  EXPECT_EQ(run({"diff", "--json", root_a, root_b}), 0);
  EXPECT_EQ(json()["equal"], true);
  EXPECT_EQ(json()["first"], nullptr);
}

TEST_F(DiffCommand, differences_are_exit_code_one_and_tell_where) {
  a.step(1).floats("w", {1, 2}).scalar("loss", 3);
  b.step(1).floats("w", {1, 4}).scalar("loss", 3);
  EXPECT_EQ(run({"diff", root_a, root_b}), 1);
  EXPECT_THAT(out, HasSubstr("first      step 1 (TRAIN 1), value of 'w', 1 of 2 elements, the "
                             "worst: 2 in A, 4 in B\n"));
  EXPECT_THAT(out, HasSubstr("w       1 (TRAIN 1)  value        1/2        2      0.5"));
  EXPECT_EQ(run({"diff", "--json", root_a, root_b}), 1);
  EXPECT_EQ(json()["first"]["tensor"], "w");
  EXPECT_EQ(json()["first"]["a"], 2.0);
  EXPECT_EQ(json()["worst"][0]["max_relative"], 0.5);
  EXPECT_EQ(json()["differing_tensors"], 1);
  EXPECT_EQ(run({"diff", root_a, root_b, "--absolute", "2"}), 0);
  EXPECT_EQ(run({"diff", root_a, root_b, "--relative", "0.4"}), 1);
  EXPECT_EQ(run({"diff", root_a, root_b, "--regex", "loss"}), 0);
  EXPECT_EQ(run({"diff", root_a, root_b, "--mode", "eval"}), 0);
}

TEST_F(DiffCommand, what_one_run_lacks_is_listed) {
  a.step(1).scalar("extra", 1);
  EXPECT_EQ(run({"diff", root_a, root_b}), 1);
  EXPECT_THAT(out, HasSubstr("only in A  1 tensor: extra\n"));
  EXPECT_THAT(out, HasSubstr("only in A  1 step: 1 (TRAIN 1)\n"));
  EXPECT_THAT(out, EndsWith("what both runs hold is equal\n"));
  EXPECT_EQ(run({"diff", root_b, root_a, "--json"}), 1);
  EXPECT_EQ(json()["only_in_b"]["tensors"], Json({"extra"}));
}

TEST_F(DiffCommand, the_table_can_be_cut) {
  a.step(1).scalar("x", 1).scalar("y", 1);
  b.step(1).scalar("x", 2).scalar("y", 3);
  EXPECT_EQ(run({"diff", root_a, root_b, "--top", "1"}), 1);
  EXPECT_THAT(out, HasSubstr("… and 1 more tensor\n"));
}

TEST_F(DiffCommand, wrong_usage_is_told) {
  EXPECT_EQ(run({"diff", root_a}), 2);
  EXPECT_THAT(err, HasSubstr("B is required"));
  EXPECT_EQ(run({"diff", root_a, folder + "/c"}), 2);
  EXPECT_THAT(err, HasSubstr("There is no directory"));
  EXPECT_EQ(run({"diff", root_a, root_b, "--absolute", "-1"}), 2);
  EXPECT_EQ(run({"diff", root_a, root_b, "--mode", "trian"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'TRAIN'?"));
}

}  // namespace
}  // namespace smd::cli
