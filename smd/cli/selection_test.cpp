#include "smd/cli/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;

class SelectionTest : public testing::Test {
 protected:
  SelectionTest() {
    planted.collections();
    planted.step(3).scalar("a/loss", 1).scalar("b/loss", 1).floats("bias", {1, 2});
    planted.step({.step = 8, .mode = Mode::eval, .mode_step = 4}).scalar("a/loss", 1);
    trial = planted.trial();
    snapshot = trial->snapshot();
  }

  PlantedRun planted;
  std::shared_ptr<Trial> trial;
  std::shared_ptr<const Snapshot> snapshot;
};

TEST_F(SelectionTest, modes_are_those_that_were_seen) {
  EXPECT_EQ(*mode_argument(*snapshot, ""), Mode::global);
  EXPECT_EQ(*mode_argument(*snapshot, "eval"), Mode::eval);
  EXPECT_THAT(mode_argument(*snapshot, "predict").error().message,
              HasSubstr("only of TRAIN and EVAL."));
  EXPECT_EQ(*mode_argument(*PlantedRun().trial()->snapshot(), "predict"), Mode::predict);
}

TEST_F(SelectionTest, the_nearest_step_is_named) {
  EXPECT_EQ((*step_argument(*snapshot, Mode::eval, 4))->info.step, 8);
  EXPECT_THAT(step_argument(*snapshot, Mode::global, 5).error().message,
              HasSubstr("Step 5 was not saved; the nearest is 3."));
  EXPECT_THAT(step_argument(*snapshot, Mode::global, 6).error().message, HasSubstr("nearest is 8"));
  EXPECT_THAT(step_argument(*snapshot, Mode::global, INT64_MIN).error().message,
              HasSubstr("nearest is 3"));
  EXPECT_THAT(step_argument(*snapshot, Mode::global, INT64_MAX).error().message,
              HasSubstr("nearest is 8"));
}

TEST_F(SelectionTest, several_close_tensors_are_named) {
  EXPECT_EQ(tensor_argument(*snapshot, "bias").ok(), true);
  EXPECT_EQ(tensor_argument(*snapshot, "c/loss").error().message,
            "There is no tensor 'c/loss'. Did you mean 'a/loss' or 'b/loss'?");
  EXPECT_THAT(tensor_argument(*snapshot, "something else").error().message,
              HasSubstr("among the 3 of the run"));
}

TEST_F(SelectionTest, patterns_and_collections_both_decide) {
  const auto filter = TensorFilter::create(*snapshot, {.patterns = {"^a", "ias$"}});
  EXPECT_TRUE(filter->selects("a/loss"));
  EXPECT_TRUE(filter->selects("bias"));
  EXPECT_FALSE(filter->selects("b/loss"));
  const auto both = TensorFilter::create(*snapshot, {.patterns = {"^a"}, .collection = "biases"});
  EXPECT_TRUE(both->selects("a/bias"));
  EXPECT_FALSE(both->selects("a/loss"));
  EXPECT_FALSE(both->selects("b/bias"));
  EXPECT_THAT(TensorFilter::create(*snapshot, {.collection = "bises"}).error().message,
              HasSubstr("Did you mean 'biases'?"));
}

TEST_F(SelectionTest, the_latest_value_is_that_of_the_newest_step) {
  const uint32_t loss = *tensor_argument(*snapshot, "a/loss");
  EXPECT_EQ(snapshot->part(latest_value(*snapshot, loss, Mode::global, {})->part).step, 8);
  EXPECT_EQ(snapshot->part(latest_value(*snapshot, loss, Mode::train, {})->part).step, 3);
  EXPECT_FALSE(latest_value(*snapshot, loss, Mode::predict, {}));
}

}  // namespace
}  // namespace smd::cli
