#include "smd/cli/step_text.h"

#include <gtest/gtest.h>

namespace smd::cli {
namespace {

TEST(StepText, modes_are_told_where_there_are_any) {
  EXPECT_EQ(step_text({.step = 40, .mode = Mode::global, .mode_step = 40}), "step 40");
  EXPECT_EQ(step_text({.step = 40, .mode = Mode::train, .mode_step = 30}), "step 40 (TRAIN 30)");
  EXPECT_EQ(step_axis(Mode::global), "step");
  EXPECT_EQ(step_axis(Mode::eval), "EVAL step");
}

}  // namespace
}  // namespace smd::cli
