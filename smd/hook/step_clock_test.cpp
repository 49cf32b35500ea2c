#include "smd/hook/step_clock.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(StepClock, counts_the_job_and_each_mode) {
  StepClock clock;
  EXPECT_FALSE(clock.started());
  clock.set_mode(Mode::train);
  EXPECT_EQ(clock.advance(), (StepInfo{0, Mode::train, 0}));
  EXPECT_EQ(clock.advance(), (StepInfo{1, Mode::train, 1}));
  clock.set_mode(Mode::eval);
  EXPECT_EQ(clock.current().mode, Mode::train) << "a step keeps the mode it started with";
  EXPECT_EQ(clock.advance(), (StepInfo{2, Mode::eval, 0}));
  clock.set_mode(Mode::train);
  EXPECT_EQ(clock.advance(), (StepInfo{3, Mode::train, 2}));
  EXPECT_EQ(clock.mode_step(Mode::global), 3);
  EXPECT_EQ(clock.mode_step(Mode::predict), -1);
  clock.set_mode(Mode::global);
  EXPECT_EQ(clock.advance(), (StepInfo{4, Mode::global, 4}));
}

TEST(StepClock, takes_numbers_that_grow) {
  StepClock clock;
  EXPECT_EQ(*clock.advance_to(7), (StepInfo{7, Mode::global, 7}));
  EXPECT_FALSE(clock.advance_to(7).ok());
  EXPECT_EQ(clock.current().step, 7);
  EXPECT_EQ(clock.advance().step, 8);
}

TEST(StepClock, goes_on_after_a_restart_and_new_modes_start_at_zero) {
  StepClock clock;
  clock.restore(19, {{Mode::train, 9}});
  clock.set_mode(Mode::train);
  EXPECT_EQ(clock.advance(), (StepInfo{20, Mode::train, 10}));
  clock.set_mode(Mode::eval);
  EXPECT_EQ(clock.advance(), (StepInfo{21, Mode::eval, 0}));
}

}  // namespace
}  // namespace smd
