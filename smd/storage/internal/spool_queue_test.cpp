#include "smd/storage/internal/spool_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::storage::internal {
namespace {

using testing::ElementsAre;

class SpoolQueueTest : public testing::Test {
 protected:
  SpoolQueue queue;

  void add_file(std::string path, uint64_t bytes) {
    queue.hold(bytes);
    queue.add({.path = std::move(path), .bytes = bytes});
  }
  std::vector<std::string> below(std::string_view prefix) const {
    std::vector<std::string> paths;
    for (const SpoolJob* job : queue.latest_below(prefix)) paths.push_back(job->path);
    return paths;
  }
};

TEST_F(SpoolQueueTest, jobs_leave_in_the_order_of_their_arrival_with_their_bytes) {
  add_file("b", 3);
  add_file("a", 4);
  EXPECT_EQ(queue.held_bytes(), 7u);
  EXPECT_EQ(queue.front().path, "b");
  queue.pop();
  EXPECT_EQ(queue.latest("b"), nullptr);
  EXPECT_EQ(queue.front().path, "a");
  EXPECT_EQ(queue.held_bytes(), 4u);
  queue.pop();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.held_bytes(), 0u);
}

TEST_F(SpoolQueueTest, a_file_that_was_replaced_holds_nothing_and_hides_nothing) {
  add_file("a", 3);
  add_file("a", 5);
  EXPECT_EQ(queue.held_bytes(), 5u);
  EXPECT_FALSE(queue.front_is_latest());
  EXPECT_EQ(queue.latest("a")->bytes, 5u);
  queue.pop();
  ASSERT_NE(queue.latest("a"), nullptr);
  EXPECT_TRUE(queue.front_is_latest());
  EXPECT_EQ(queue.held_bytes(), 5u);
}

TEST_F(SpoolQueueTest, a_removal_stays_when_its_file_comes_again) {
  queue.add({.path = "a", .removal = true});
  add_file("a", 2);
  EXPECT_TRUE(queue.front().removal);
  EXPECT_FALSE(queue.latest("a")->removal);
  queue.pop();
  EXPECT_FALSE(queue.front().removal);
}

TEST_F(SpoolQueueTest, a_job_that_is_kept_says_so) {
  add_file("a", 1);
  EXPECT_FALSE(queue.front().again);
  queue.keep_front();
  EXPECT_TRUE(queue.front().again);
}

TEST_F(SpoolQueueTest, lists_each_path_of_a_folder_once_and_sorted) {
  add_file("x/b", 1);
  add_file("x/a", 1);
  add_file("x/b", 1);
  add_file("xy", 1);
  EXPECT_THAT(below("x/"), ElementsAre("x/a", "x/b"));
  EXPECT_THAT(below(""), ElementsAre("x/a", "x/b", "xy"));
}

}  // namespace
}  // namespace smd::storage::internal
