#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "smd/cli/internal/program_test_case.h"

namespace smd::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SagemakerLocalCommand : public ProgramTestCase {
 protected:
  SagemakerLocalCommand() {
    std::ofstream(script) << "pass\n";
    std::ofstream(config) << "{}\n";
  }
  const std::string script = folder + "/train.py";
  const std::string config = folder + "/job.json";
};

TEST_F(SagemakerLocalCommand, options_after_the_script_are_the_scripts) {
  EXPECT_EQ(run({"sagemaker-local", "--root", folder, "--config", config, "--config={}", script,
                 "--root", "x", "--json", "-h", "--unknown", "y"}),
            0)
      << err;
  EXPECT_THAT(handed_over,
              ElementsAre("sagemaker-local", "--root", folder, "--config", config, "--config={}",
                          "--", script, "--root", "x", "--json", "-h", "--unknown", "y"));
}

TEST_F(SagemakerLocalCommand, a_separator_may_be_given) {
  EXPECT_EQ(run({"--json", "sagemaker-local", "--", script, "--", "z"}), 0) << err;
  EXPECT_THAT(handed_over, ElementsAre("sagemaker-local", "--json", "--", script, "--", "z"));
}

TEST_F(SagemakerLocalCommand, wrong_arguments_are_refused_before) {
  EXPECT_EQ(run({"sagemaker-local"}), 2);
  EXPECT_THAT(err, HasSubstr("SCRIPT is required"));
  EXPECT_EQ(run({"sagemaker-local", folder + "/none.py"}), 2);
  EXPECT_THAT(err, HasSubstr("There is no script to run"));
  EXPECT_EQ(run({"sagemaker-local", folder}), 2);
  EXPECT_THAT(err, HasSubstr("There is no script to run"));
  EXPECT_EQ(run({"sagemaker-local", "--root", script, script}), 2);
  EXPECT_THAT(err, HasSubstr("--root is not a directory"));
  EXPECT_EQ(run({"sagemaker-local", "--config", folder + "/none.json", script}), 2);
  EXPECT_THAT(err, HasSubstr("neither a file nor JSON text"));
  EXPECT_EQ(run({"sagemaker-local", "--rot", folder, script}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean '--root'?"));
  EXPECT_THAT(handed_over, IsEmpty());
}

}  // namespace
}  // namespace smd::cli
