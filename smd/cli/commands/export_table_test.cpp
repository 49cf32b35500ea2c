#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/golden_folder.h"

namespace smd::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExportCommand : public ProgramTestCase {
 protected:
  const std::string golden = golden_folder();
  const std::string hook = golden + "/hook";
};

TEST_F(ExportCommand, right_arguments_are_handed_over_to_python) {
  const std::string file = folder + "/out.parquet";
  EXPECT_EQ(run({"export", hook, file, "--regex", "loss", "--reduction", "l2", "--mode", "train"}),
            0)
      << err;
  EXPECT_THAT(handed_over, ElementsAre("export", hook, file, "--regex", "loss", "--reduction", "l2",
                                       "--mode", "train"));
}

TEST_F(ExportCommand, an_exporter_and_its_settings_are_handed_over) {
  const std::string uri = "tracking_uri=http://host?a=b";
  EXPECT_EQ(run({"export", hook, "--to", "mlflow", "--set", uri, "--set", "run_id="}), 0) << err;
  EXPECT_THAT(handed_over,
              ElementsAre("export", hook, "--to", "mlflow", "--set", uri, "--set", "run_id="));
}

TEST_F(ExportCommand, a_file_and_an_exporter_exclude_each_other) {
  EXPECT_EQ(run({"export", hook, folder + "/out.csv", "--to", "wandb"}), 2);
  EXPECT_THAT(err, HasSubstr("Give OUT or --to, not both"));
  EXPECT_EQ(run({"export", hook}), 2);
  EXPECT_THAT(err, HasSubstr("OUT is required"));
  EXPECT_EQ(run({"export", hook, folder + "/out.csv", "--set", "project=x"}), 2);
  EXPECT_THAT(err, HasSubstr("give its name with --to"));
  EXPECT_EQ(run({"export", hook, "--to", "wandb", "--set", "project"}), 2);
  EXPECT_THAT(err, HasSubstr("--set takes KEY=VALUE, not 'project'."));
  EXPECT_EQ(run({"export", hook, "--to", "wandb", "--set", "=x"}), 2);
  EXPECT_EQ(run({"export", hook, "--to", "mlfow"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'mlflow'?"));
  EXPECT_EQ(run({"export", hook, "--to", "mlflow", "--regex", "nothing"}), 2);
  EXPECT_THAT(err, HasSubstr("None of the 7 tensors of the run fits"));
  EXPECT_THAT(handed_over, IsEmpty());
}

TEST_F(ExportCommand, wrong_ones_are_refused_before) {
  const std::string file = folder + "/out.csv";
  EXPECT_EQ(run({"export", hook, folder + "/out.parqet"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean '.parquet'?"));
  EXPECT_EQ(run({"export", hook, folder + "/nowhere/out.csv"}), 2);
  EXPECT_THAT(err, HasSubstr("to write to"));
  EXPECT_EQ(run({"export", folder + "/none", file}), 2);
  EXPECT_THAT(err, HasSubstr("There is no directory"));
  EXPECT_EQ(run({"export", hook, file, "--regex", "nothing"}), 2);
  EXPECT_THAT(err, HasSubstr("None of the 7 tensors of the run fits"));
  EXPECT_EQ(run({"export", hook, file, "--reduction", "meann"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'mean'?"));
  EXPECT_EQ(run({"export", hook, file, "--worker", "worker_9"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'worker_0'?"));
  EXPECT_THAT(handed_over, IsEmpty());
}

TEST_F(ExportCommand, the_index_of_a_packed_run_is_written_beside_it) {
  const std::string packed = folder + "/packed";
  ASSERT_EQ(run({"repack", hook, packed, "--layout", "packed"}), 0) << err;
  EXPECT_EQ(run({"export", "--index-only", packed}), 0) << err;
  EXPECT_THAT(out, HasSubstr("for 4 steps of 1 worker\n"));
  EXPECT_EQ(run({"export", "--index-only", packed, "--json"}), 0) << err;
  EXPECT_EQ(json()["steps"], 4);
  EXPECT_EQ(json()["left_out"], 0);
  EXPECT_TRUE(std::filesystem::exists(packed + "/index/000000000/000000000000_worker_0.json"));
  EXPECT_EQ(run({"diff", hook, packed}), 0) << out;
  EXPECT_THAT(handed_over, IsEmpty());
}

TEST_F(ExportCommand, the_index_goes_with_nothing_else) {
  EXPECT_EQ(run({"export", "--index-only", hook, folder + "/out.csv"}), 2);
  EXPECT_THAT(err, HasSubstr("no other argument than RUN"));
  EXPECT_EQ(run({"export", "--index-only", hook}), 2);
  EXPECT_THAT(err, HasSubstr("not in the packed layout"));
  EXPECT_EQ(run({"export", hook}), 2);
  EXPECT_THAT(err, HasSubstr("OUT is required"));
}

}  // namespace
}  // namespace smd::cli
