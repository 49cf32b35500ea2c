#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/golden_folder.h"
#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ShowCommand : public ProgramTestCase {
 protected:
  ShowCommand() { planted.storage = storage::local_storage(root); }

  const std::string golden = golden_folder();
  const std::string root = folder + "/run";
  PlantedRun planted;
};

TEST_F(ShowCommand, the_last_step_is_shown_with_statistics_and_values) {
  planted.collections();
  planted.step(0).floats("w", {9});
  planted.step(3).floats("w", {-1, 0, 2.5}).reduction("w", "median", 7);
  EXPECT_EQ(run({"show", root, "w"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("w  step 3 (TRAIN 3)  worker_0  float32[3]  12 B"));
  EXPECT_THAT(out,
              HasSubstr("stored    median 7\n"
                        "computed  min -1  max 2.5  mean 0.5  std 1.47196  l1 3.5  l2 2.69258\n"
                        "counted   3 elements  NaN 0  inf 0  zero 1\n"
                        "[ -1   0 2.5]\n"));
  EXPECT_EQ(run({"show", root, "w", "--step", "0", "--values"}), 0);
  EXPECT_THAT(out, HasSubstr("\n[9]\n"));
  EXPECT_THAT(out, Not(HasSubstr("computed")));
  EXPECT_EQ(run({"show", root, "w", "--stats"}), 0);
  EXPECT_THAT(out, Not(HasSubstr("[ -1")));
}

TEST_F(ShowCommand, json_has_numbers_and_elements) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  planted.collections();
  planted.step(0).tensor<float>("w", DType::float32, {2, 2}, {1, kNan, kInf, 0});
  EXPECT_EQ(run({"show", "--json", root, "w"}), 0) << err;
  EXPECT_EQ(json()["dtype"], "float32");
  EXPECT_EQ(json()["shape"], Json({2, 2}));
  EXPECT_EQ(json()["computed"]["nan"], 1);
  EXPECT_EQ(json()["computed"]["inf"], 1);
  EXPECT_EQ(json()["computed"]["zero"], 1);
  EXPECT_EQ(json()["computed"]["mean"], "NaN");
  EXPECT_EQ(json()["values"], Json::parse(R"([[1.0, "NaN"], ["Infinity", 0.0]])"));
  EXPECT_EQ(run({"show", "--json", root, "w", "--limit", "3"}), 0);
  EXPECT_EQ(json()["values"], nullptr);
}

TEST_F(ShowCommand, texts_and_reductions_without_values_are_shown) {
  EXPECT_EQ(run({"show", golden + "/types", "string/unicode", "--json"}), 0);
  EXPECT_EQ(json()["dtype"], "str");
  EXPECT_EQ(json()["values"].size(), 2u);
  EXPECT_EQ(json()["computed"], nullptr);
  EXPECT_EQ(run({"show", golden + "/hook", "reduced/vector"}), 0);
  EXPECT_THAT(out, HasSubstr("stored    "));
  EXPECT_THAT(out, Not(HasSubstr("computed")));
  EXPECT_EQ(run({"show", golden + "/hook", "reduced/vector", "--values"}), 0);
  EXPECT_THAT(out, HasSubstr("The value was not saved at this step."));
  EXPECT_EQ(run({"show", golden + "/shapes", "layer/weight"}), 0);
  EXPECT_THAT(out, HasSubstr("shape [2, 3]"));
}

TEST_F(ShowCommand, a_text_cannot_steer_the_terminal) {
  planted.collections();
  planted.step(0).strings("note", {"\x1b[2Jgone"});
  EXPECT_EQ(run({"show", root, "note"}), 0);
  EXPECT_THAT(out, HasSubstr("['\\x1b[2Jgone']"));
}

TEST_F(ShowCommand, unknown_names_get_those_that_are_close) {
  planted.collections();
  planted.step(0).scalar("train/loss", 1).scalar("eval/loss", 1).scalar("weight", 1);
  EXPECT_EQ(run({"show", root, "loss"}), 2);
  EXPECT_THAT(err, HasSubstr("There is no tensor 'loss'."));
  EXPECT_THAT(err, HasSubstr("'train/loss'"));
  EXPECT_THAT(err, HasSubstr("'eval/loss'"));
  EXPECT_THAT(err, Not(HasSubstr("'weight'")));
  EXPECT_EQ(run({"show", root, "wieght"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'weight'?"));
  EXPECT_EQ(out, "");
}

TEST_F(ShowCommand, a_step_or_worker_without_it_is_told) {
  planted.collections(2);
  planted.step(0).scalar("loss", 1);
  planted.step(1).scalar("other", 1);
  planted.step(0, "worker_1").scalar("other", 2);
  EXPECT_EQ(run({"show", root, "loss", "--step", "1"}), 2);
  EXPECT_THAT(err, HasSubstr("was not saved at step 1, but at 1 step from 0 to 0."));
  EXPECT_EQ(run({"show", root, "loss", "--worker", "worker_1"}), 2);
  EXPECT_THAT(err, HasSubstr("by worker 'worker_1'"));
  EXPECT_EQ(run({"show", root, "other", "--worker", "worker_1", "--json"}), 0);
  EXPECT_EQ(json()["values"], 2.0);
  EXPECT_EQ(run({"show", root}), 2);
  EXPECT_THAT(err, HasSubstr("TENSOR is required"));
}

}  // namespace
}  // namespace smd::cli
