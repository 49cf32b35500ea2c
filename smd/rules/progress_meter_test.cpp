#include "smd/rules/progress_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/planted_run.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class ProgressMeterTest : public testing::Test {
 protected:
  Progress measure(double after_secs) {
    clock->advance(after_secs);
    EXPECT_TRUE(trial->refresh().ok());
    return meter.measure(*trial);
  }
  double since(const Progress& progress) const { return progress.newest_secs - began; }

  PlantedRun run;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1000);
  const double began = std::chrono::duration<double>(clock->now().time_since_epoch()).count();
  std::unique_ptr<Trial> trial = *Trial::open(run.storage, {.end_delay_secs = 0});
  ProgressMeter meter{clock};
};

TEST_F(ProgressMeterTest, silence_begins_with_the_meter) {
  const Progress none = measure(7);
  EXPECT_FALSE(none.newest_step);
  EXPECT_EQ(since(none), 0);
  EXPECT_EQ(none.now_secs - none.newest_secs, 7);
  EXPECT_THAT(none.worker_secs, IsEmpty());
  EXPECT_FALSE(none.has_ended);
}

TEST_F(ProgressMeterTest, the_run_and_each_worker_are_as_old_as_their_newest_step) {
  run.collections(2);
  run.step(0, "worker_0").floats("x", {1});
  run.step(0, "worker_1").floats("x", {1});
  measure(5);
  run.step(1, "worker_0").floats("x", {1});
  measure(10);
  const Progress later = measure(20);
  ASSERT_TRUE(later.newest_step);
  EXPECT_EQ(later.newest_step->step, 1);
  EXPECT_EQ(since(later), 15);
  EXPECT_THAT(later.worker_secs,
              ElementsAre(Pair("worker_0", began + 15), Pair("worker_1", began + 5)));
}

TEST_F(ProgressMeterTest, an_ended_job_says_so) {
  run.collections();
  run.step(0).floats("x", {1});
  run.end();
  EXPECT_TRUE(measure(1).has_ended);
}

}  // namespace
}  // namespace smd::rules
