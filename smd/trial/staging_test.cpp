// Which steps are complete, and what is known of a step: the tables of the format's documentation.

#include "smd/trial/staging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum StepState;

// Steps of workers arrive as each test says.
class StagingTest : public testing::Test {
 protected:
  void expect_workers(int64_t count) {
    auto collections = std::make_shared<CollectionSet>();
    ASSERT_TRUE(collections->set_num_workers(count).ok());
    std::vector<std::string> workers;
    for (int64_t i = 0; i < count; ++i) workers.push_back("worker_" + std::to_string(i));
    staging().set_collections(std::move(collections), std::move(workers));
  }
  void arrive(Step step, int worker, Mode mode = Mode::train, std::optional<Step> mode_step = {}) {
    const std::string name = "worker_" + std::to_string(worker);
    const uint32_t layout = staging().add_layout({{staging().tensor("w"), 0, 0, 10}}, {});
    staging().add({.step = {.step = step, .mode = mode, .mode_step = mode_step.value_or(step)},
                   .worker = name,
                   .layout = layout,
                   .file = "events/x"});
  }
  Staging& staging() {
    if (!staging_) staging_.emplace(options);
    return *staging_;
  }
  std::shared_ptr<const Snapshot> now() { return staging().publish(); }
  std::vector<Step> complete() { return now()->steps(Mode::global, false); }

  StagingOptions options;
  std::optional<Staging> staging_;
};

TEST_F(StagingTest, every_step_of_a_single_worker_is_complete) {
  expect_workers(1);
  arrive(0, 0);
  arrive(10, 0);
  EXPECT_THAT(complete(), ElementsAre(0, 10));
  EXPECT_EQ(now()->last_complete_step(), 10);
  EXPECT_EQ(now()->state(Mode::global, 0), available);
  EXPECT_EQ(now()->state(Mode::global, 5), unavailable) << "skipped";
  EXPECT_EQ(now()->state(Mode::global, 11), not_yet_available);
  staging().finish();
  EXPECT_EQ(now()->state(Mode::global, 11), unavailable);
}

TEST_F(StagingTest, a_step_waits_for_all_workers) {
  expect_workers(3);
  arrive(0, 0);
  arrive(0, 2);
  EXPECT_THAT(complete(), IsEmpty());
  EXPECT_THAT(now()->steps(Mode::global, true), ElementsAre(0));
  EXPECT_EQ(now()->state(Mode::global, 0), not_yet_available);
  arrive(0, 1);
  EXPECT_THAT(complete(), ElementsAre(0));
  EXPECT_EQ(now()->state(Mode::global, 0), available);
}

TEST_F(StagingTest, a_later_complete_step_completes_those_before_it) {
  expect_workers(2);
  arrive(0, 0);
  arrive(5, 0);
  EXPECT_EQ(now()->state(Mode::global, 3), not_yet_available) << "5 is not complete yet";
  arrive(5, 1);
  EXPECT_THAT(complete(), ElementsAre(0, 5));
  EXPECT_EQ(now()->last_complete_step(), 5);
  EXPECT_EQ(now()->state(Mode::global, 0), available) << "worker 1 went past it";
  EXPECT_EQ(now()->state(Mode::global, 3), unavailable);
  EXPECT_EQ(now()->state(Mode::global, 6), not_yet_available);
}

TEST_F(StagingTest, the_end_completes_everything) {
  expect_workers(2);
  arrive(0, 0);
  arrive(7, 1);
  staging().finish();
  EXPECT_TRUE(now()->loaded_all());
  EXPECT_EQ(now()->last_complete_step(), 7);
  EXPECT_THAT(complete(), ElementsAre(0, 7));
  EXPECT_EQ(now()->state(Mode::global, 0), available);
  EXPECT_EQ(now()->state(Mode::global, 3), unavailable);
  EXPECT_EQ(now()->state(Mode::global, 8), unavailable);
}

TEST_F(StagingTest, a_late_file_of_a_passed_step_still_counts) {
  expect_workers(2);
  arrive(0, 0);
  arrive(1, 0);
  arrive(1, 1);
  arrive(0, 1);
  EXPECT_THAT(now()->workers_of(*now()->find_row(0), 0), ElementsAre("worker_0", "worker_1"));
  EXPECT_EQ(now()->last_complete_step(), 1);
}

// Twenty steps, one of three workers, a window of ten: 4 after the first look, 9 after the second.
TEST_F(StagingTest, too_many_waiting_steps_are_given_up_by_halves) {
  options.wait_window = 10;
  expect_workers(3);
  for (Step step = 0; step < 20; ++step) arrive(step, 0);
  staging().limit_waiting();
  EXPECT_EQ(now()->last_complete_step(), 4);
  staging().limit_waiting();
  EXPECT_EQ(now()->last_complete_step(), 9);
  staging().limit_waiting();
  EXPECT_EQ(now()->last_complete_step(), 9);
  EXPECT_THAT(complete(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(StagingTest, the_window_counts_steps_whatever_their_interval) {
  options.wait_window = 4;
  expect_workers(2);
  for (Step step = 0; step < 500; step += 100) arrive(step, 0);
  staging().limit_waiting();
  EXPECT_EQ(now()->last_complete_step(), 100);
}

TEST_F(StagingTest, modes_have_their_own_steps) {
  expect_workers(1);
  arrive(0, 0, Mode::train, 0);
  arrive(1, 0, Mode::eval, 0);
  arrive(2, 0, Mode::train, 1);
  EXPECT_THAT(now()->modes(), ElementsAre(Mode::train, Mode::eval));
  EXPECT_THAT(now()->steps(Mode::train, false), ElementsAre(0, 1));
  EXPECT_THAT(now()->steps(Mode::eval, false), ElementsAre(0));
  EXPECT_THAT(now()->steps(Mode::predict, false), IsEmpty());
  EXPECT_EQ(now()->global_step(Mode::train, 1), 2);
  EXPECT_EQ(now()->global_step(Mode::train, 2), std::nullopt);
  EXPECT_EQ(now()->global_step(Mode::global, 77), 77) << "itself, even if unknown";
  EXPECT_EQ(now()->state(Mode::eval, 0), available);
  EXPECT_EQ(now()->state(Mode::eval, 1), not_yet_available);
  EXPECT_EQ(now()->state(Mode::predict, 0), not_yet_available);
  EXPECT_EQ(now()->last_step(Mode::train), 1);
  EXPECT_EQ(now()->last_step(Mode::predict), std::nullopt);
}

TEST_F(StagingTest, of_repeated_mode_steps_the_first_counts) {
  expect_workers(1);
  arrive(0, 0, Mode::train, 0);
  arrive(1, 0, Mode::train, 1);
  arrive(2, 0, Mode::train, 1);
  EXPECT_EQ(now()->global_step(Mode::train, 1), 1);
  EXPECT_THAT(now()->steps(Mode::train, false), ElementsAre(0, 1));
  EXPECT_THAT(now()->steps(Mode::global, false), ElementsAre(0, 1, 2));
}

TEST_F(StagingTest, steps_outside_of_the_range_are_not_there_and_will_not_come) {
  options.range = {.begin = 5, .end = 10};
  expect_workers(1);
  for (Step step = 0; step < 20; ++step) arrive(step, 0);
  EXPECT_THAT(complete(), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_EQ(now()->state(Mode::global, 4), unavailable);
  EXPECT_EQ(now()->state(Mode::global, 10), unavailable);
}

TEST_F(StagingTest, a_step_written_again_takes_the_place_of_the_first) {
  expect_workers(1);
  arrive(3, 0, Mode::train, 3);
  const auto before = now();
  arrive(3, 0, Mode::eval, 0);
  EXPECT_EQ(before->find_row(3)->info.mode, Mode::train) << "a snapshot does not change";
  EXPECT_EQ(now()->find_row(3)->info.mode, Mode::eval);
  EXPECT_EQ(now()->find_row(3)->part_count, 1u);
  EXPECT_NE(now()->find_row(3)->first_part, before->find_row(3)->first_part);
}

TEST_F(StagingTest, nothing_new_means_the_same_snapshot) {
  expect_workers(1);
  arrive(0, 0);
  const auto first = now();
  EXPECT_EQ(now(), first);
  arrive(1, 0);
  EXPECT_NE(now(), first);
  EXPECT_EQ(first->row_count(), 1u);
}

TEST_F(StagingTest, equal_layouts_are_one) {
  expect_workers(1);
  const uint32_t a = staging().add_layout({{0, 0, 0, 10}}, {});
  EXPECT_EQ(staging().add_layout({{0, 0, 0, 10}}, {}), a);
  EXPECT_NE(staging().add_layout({{0, 0, 0, 11}}, {}), a);
  EXPECT_NE(staging().add_layout({{0, 0, 0, 10}}, {{0, "x", {1}}}), a);
}

}  // namespace
}  // namespace smd
