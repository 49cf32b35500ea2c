#include "smd/types/worker.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(Worker, device_strings_survive_the_way_through_a_file_name) {
  const std::string device = "/job:worker/replica:0/task:1/device:GPU:0";
  EXPECT_EQ(worker_to_file_name(device), "_job-worker_replica-0_task-1_device-GPU-0");
  EXPECT_EQ(worker_from_file_name(worker_to_file_name(device)), device);
}

TEST(Worker, ordinary_names_stay_as_they_are) {
  EXPECT_EQ(worker_name(7), "worker_7");
  EXPECT_EQ(worker_to_file_name("worker_0"), "worker_0");
  EXPECT_EQ(worker_from_file_name("algo-1__x"), "algo-1__x");
}

TEST(Worker, a_name_that_would_leave_its_directory_is_refused) {
  EXPECT_TRUE(check_worker("worker_0").ok());
  EXPECT_TRUE(check_worker("/task:0").ok());
  EXPECT_FALSE(check_worker("../x").ok());
  EXPECT_FALSE(check_worker("").ok());
}

}  // namespace
}  // namespace smd
