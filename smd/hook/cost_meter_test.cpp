#include "smd/hook/cost_meter.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

class CostMeterTest : public testing::Test {
 protected:
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1000);
  CostMeter meter{clock};
};

TEST_F(CostMeterTest, counts_the_outermost_scope_once) {
  meter.start();
  clock->advance(1);
  {
    const CostMeter::Scope outer(meter);
    clock->advance(0.25);
    const CostMeter::Scope inner(meter);
    clock->advance(0.25);
    const CostMeter::CallScope call(meter, 1 << 20);
    clock->advance(0.5);
  }
  clock->advance(2);
  EXPECT_NEAR(meter.cost_secs(), 1, 1e-6);
  EXPECT_NEAR(meter.training_secs(), 4, 1e-6);
}

TEST_F(CostMeterTest, small_calls_are_sampled_and_large_ones_measured_each) {
  for (int i = 0; i < 32; ++i) {
    const CostMeter::CallScope call(meter, 4);
    clock->advance(0.125);
  }
  EXPECT_NEAR(meter.cost_secs(), 4, 1e-5) << "16 measured each, and one for the other 16";
  for (int i = 0; i < 3; ++i) {
    const CostMeter::CallScope call(meter, 1 << 20);
    clock->advance(1);
  }
  EXPECT_NEAR(meter.cost_secs(), 7, 1e-5);
}

TEST_F(CostMeterTest, has_no_training_time_before_the_first_step) {
  clock->advance(5);
  EXPECT_FALSE(meter.started());
  EXPECT_EQ(meter.training_secs(), 0);
}

}  // namespace
}  // namespace smd
