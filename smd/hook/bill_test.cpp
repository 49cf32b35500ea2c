#include "smd/hook/bill.h"

#include <gtest/gtest.h>

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

TEST(Bill, has_no_share_before_the_training) {
  EXPECT_EQ(Bill{}.share(), 0);
  EXPECT_NE(Bill{}.to_text().find("0 bytes in 0 of 0 steps"), std::string::npos);
}

}  // namespace
}  // namespace smd
