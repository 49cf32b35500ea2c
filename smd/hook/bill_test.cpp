#include "smd/hook/bill.h"

#include <gtest/gtest.h>

#include "smd/base/json.h"

namespace smd {
namespace {

TEST(Bill, says_what_recording_cost_in_one_sentence) {
  const Bill bill{.cost_secs = 0.25,
                  .training_secs = 50,
                  .steps = 1000,
                  .saved_steps = 20,
                  .tensors = 400,
                  .bytes = 3 << 19};
  EXPECT_DOUBLE_EQ(bill.share(), 0.005);
  EXPECT_EQ(bill.to_text(),
            "Recording took 250.0 ms of 50.0 s on the training thread (0.50 %): 400 tensors, 1.5 "
            "MiB in 20 of 1000 steps.");
}

TEST(Bill, is_a_file_of_the_run) {
  const Bill bill{.cost_secs = 0.5, .training_secs = 2, .steps = 9, .saved_steps = 3};
  const auto parsed = parse_json(bill.to_json("worker_0"), "a bill");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ((*parsed)["worker"], "worker_0");
  EXPECT_EQ((*parsed)["share"], 0.25);
  EXPECT_EQ((*parsed)["saved_steps"], 3);
  EXPECT_EQ(bill_file_name("worker_0"), "overhead/worker_0.json");
}

TEST(Bill, tells_of_values_that_found_no_room) {
  const Bill bill{.left_out = 2, .left_out_bytes = 4096};
  EXPECT_NE(bill.to_text().find("The values of 2 tensors, 4.0 KiB, found no room in the queue."),
            std::string::npos);
  const auto parsed = parse_json(bill.to_json("worker_0"), "a bill");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ((*parsed)["left_out"], 2);
  EXPECT_EQ((*parsed)["left_out_bytes"], 4096);
}

TEST(Bill, has_no_share_before_the_training) {
  EXPECT_EQ(Bill{}.share(), 0);
  EXPECT_NE(Bill{}.to_text().find("0 bytes in 0 of 0 steps"), std::string::npos);
}

}  // namespace
}  // namespace smd
