#include "smd/cli/recording_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "smd/cli/internal/program_test_case.h"

namespace smd::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RecordingOptionsTest : public ProgramTestCase {
 protected:
  RecordingOptionsTest() {
    std::ofstream(script) << "pass\n";
    std::ofstream(config) << "{}\n";
  }
  const std::string script = folder + "/train.py";
  const std::string config = folder + "/job.json";
};

TEST_F(RecordingOptionsTest, words_of_the_program_are_left_alone) {
  EXPECT_EQ(run({"run", "--out", "x", "--save", "weights,gradients:10", "--raw", script, "--out",
                 "y", "--json", "-h"}),
            0)
      << err;
  EXPECT_THAT(handed_over, ElementsAre("run", "--out", "x", "--save", "weights,gradients:10",
                                       "--raw", "--", script, "--out", "y", "--json", "-h"));
  EXPECT_EQ(run({"plan", "--steps", "2", "--", "torchrun", script}), 0) << err;
  EXPECT_THAT(handed_over, ElementsAre("plan", "--steps", "2", "--", "torchrun", script));
}

TEST_F(RecordingOptionsTest, a_module_is_a_program) {
  EXPECT_EQ(run({"run", "--raw", "-m", "package.train", "--out", "y"}), 0) << err;
  EXPECT_THAT(handed_over, ElementsAre("run", "--raw", "--", "-m", "package.train", "--out", "y"));
}

TEST_F(RecordingOptionsTest, wrong_choices_are_refused_with_the_nearest) {
  const auto complaint = [&](std::initializer_list<std::string> words) {
    EXPECT_EQ(run(words), 2);
    EXPECT_THAT(out, IsEmpty());
    return err;
  };
  EXPECT_THAT(complaint({"run"}), HasSubstr("PROGRAM is required"));
  EXPECT_THAT(complaint({"run", "--save", "wieghts", script}),
              HasSubstr("Did you mean 'weights'?"));
  EXPECT_THAT(complaint({"run", "--save", "weights:0", script}), HasSubstr("weights:0"));
  EXPECT_THAT(complaint({"run", "--save", "weights:", script}), HasSubstr("weights:"));
  EXPECT_THAT(complaint({"run", "--reductions", "min,men", script}),
              HasSubstr("Did you mean 'mean'?"));
  EXPECT_THAT(complaint({"run", "--layout", "pack", script}), HasSubstr("Did you mean 'packed'?"));
  EXPECT_THAT(complaint({"run", "--interval", "-3", script}),
              HasSubstr("'-3' is no whole number of at least 1"));
  EXPECT_THAT(complaint({"run", "--intreval", "3", script}),
              HasSubstr("Did you mean '--interval'?"));
  EXPECT_THAT(complaint({"plan", "--steps", "many", script}),
              HasSubstr("'many' is no whole number of at least 1"));
  EXPECT_THAT(complaint({"run", folder + "/trian.py"}), HasSubstr("Did you mean 'train.py'?"));
  EXPECT_THAT(complaint({"run", "--config", folder + "/none.json", script}),
              HasSubstr("--config is not a file"));
  EXPECT_THAT(complaint({"run", "--config", config, "--raw", script}),
              HasSubstr("only --out goes with it"));
  EXPECT_THAT(handed_over, IsEmpty());
  EXPECT_EQ(run({"run", "--config", config, "--out", "x", script}), 0) << err;
}

}  // namespace
}  // namespace smd::cli
