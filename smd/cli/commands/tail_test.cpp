#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class TailCommand : public ProgramTestCase {
 protected:
  TailCommand() { planted.storage = storage::local_storage(root); }

  void finished(Step steps) {
    planted.collections();
    for (Step s = 0; s < steps; ++s) {
      planted.step(s).scalar("loss", static_cast<double>(s) / 2).floats("w", {1, 3});
    }
    planted.end();
  }

  const std::string root = folder + "/run";
  PlantedRun planted;
};

TEST_F(TailCommand, the_last_steps_are_printed) {
  finished(12);
  EXPECT_EQ(run({"tail", root, "--exit-with-job"}), 0) << err;
  EXPECT_THAT(out, testing::StartsWith("step        mode        loss\n"
                                       "   2     TRAIN 2           1\n"
                                       "   3     TRAIN 3         1.5\n"));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 11);
  EXPECT_EQ(err, "");
}

TEST_F(TailCommand, the_first_step_can_be_chosen) {
  finished(12);
  EXPECT_EQ(run({"tail", root, "--exit-with-job", "--from", "0"}), 0);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 13);
  EXPECT_EQ(run({"tail", root, "--exit-with-job", "--from", "11", "--json"}), 0);
  EXPECT_EQ(json()["step"], 11);
  EXPECT_EQ(json()["mode"], "TRAIN");
  EXPECT_EQ(json()["numbers"], Json({{"loss", 5.5}}));
}

TEST_F(TailCommand, named_tensors_are_reduced) {
  finished(1);
  EXPECT_EQ(run({"tail", root, "--exit-with-job", "--json", "--regex", "."}), 0);
  EXPECT_EQ(json()["numbers"], Json({{"loss", 0.0}, {"w (mean)", 2.0}}));
  EXPECT_EQ(run({"tail", root, "--exit-with-job", "--json", "--reduction", "max"}), 0);
  EXPECT_EQ(json()["numbers"], Json({{"loss (max)", 0.0}, {"w (max)", 3.0}}));
}

TEST_F(TailCommand, texts_are_passed_over) {
  planted.collections();
  planted.step(0).strings("note", {"hello"}).scalar("loss", 1);
  planted.end();
  EXPECT_EQ(run({"tail", root, "--exit-with-job", "--json", "--regex", "."}), 0);
  EXPECT_EQ(json()["numbers"], Json({{"loss", 1.0}})) << err;
}

TEST_F(TailCommand, only_steps_of_the_mode) {
  finished(2);
  planted.step({.step = 5, .mode = Mode::eval, .mode_step = 0}).scalar("accuracy", 1);
  EXPECT_EQ(run({"tail", root, "--exit-with-job", "--mode", "eval"}), 0);
  EXPECT_THAT(out, HasSubstr("EVAL 0"));
  EXPECT_THAT(out, Not(HasSubstr("TRAIN")));
}

TEST_F(TailCommand, new_columns_get_new_titles) {
  finished(1);
  planted.step(1).scalar("loss", 1).scalar("rate", 2);
  EXPECT_EQ(run({"tail", root, "--exit-with-job"}), 0);
  EXPECT_EQ(out,
            "step        mode        loss\n"
            "   0     TRAIN 0           0\n"
            "step        mode        loss        rate\n"
            "   1     TRAIN 1           1           2\n");
}

TEST_F(TailCommand, as_many_columns_as_fit) {
  planted.collections();
  planted.step(0).scalar("first", 1).scalar("second", 2).scalar("third", 3);
  planted.end();
  is_terminal = true;
  width = 40;
  EXPECT_EQ(run({"tail", root, "--exit-with-job", "--color", "never"}), 0);
  EXPECT_THAT(out, HasSubstr("second"));
  EXPECT_THAT(out, Not(HasSubstr("third")));
  EXPECT_EQ(err, "smdebug: 1 more numbers do not fit; choose with --regex.\n");
}

TEST_F(TailCommand, a_step_whose_file_is_gone_is_told_and_passed_over) {
  finished(3);
  ASSERT_TRUE(planted.storage->remove(format::event_file_name(1, "worker_0")).ok());
  EXPECT_EQ(run({"tail", root, "--exit-with-job"}), 0);
  EXPECT_THAT(err, HasSubstr("Step 1 cannot be read: "));
  EXPECT_THAT(out, HasSubstr("TRAIN 2"));
}

TEST_F(TailCommand, wrong_usage_is_told_at_once) {
  finished(1);
  EXPECT_EQ(run({"tail", root, "--regex", "("}), 2);
  EXPECT_EQ(run({"tail", root, "--mode", "trian"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'TRAIN'?"));
  EXPECT_EQ(run({"tail", root, "--reduction", "meann"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'mean'?"));
  EXPECT_EQ(run({"tail", root + "/index"}), 2);
  EXPECT_THAT(err, HasSubstr("only a part of a run"));
}

}  // namespace
}  // namespace smd::cli
