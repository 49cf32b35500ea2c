#include "smd/storage/retry.h"

#include <gtest/gtest.h>

namespace smd::storage {
namespace {

using std::chrono::milliseconds;

TEST(RetrySchedule, doubles_up_to_its_limit) {
  RetrySchedule schedule({.first = milliseconds(100), .longest = milliseconds(1000)},
                         [] { return 1.0; });
  for (const int wait : {100, 200, 400, 800, 1000, 1000})
    EXPECT_EQ(schedule.next(), milliseconds(wait));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(schedule.next(), milliseconds(1000));
  schedule.reset();
  EXPECT_EQ(schedule.next(), milliseconds(100));
}

TEST(RetrySchedule, takes_a_random_part) {
  RetrySchedule half({.first = milliseconds(100), .longest = milliseconds(1000)},
                     [] { return 0.5; });
  EXPECT_EQ(half.next(), milliseconds(50));
  EXPECT_EQ(half.next(), milliseconds(100));
  RetrySchedule any({.first = milliseconds(1000), .longest = milliseconds(1000)});
  bool differs = false;
  const auto first = any.next();
  for (int i = 0; i < 20; ++i) {
    const auto wait = any.next();
    EXPECT_LE(wait, milliseconds(1000));
    EXPECT_GE(wait, milliseconds(0));
    differs = differs || wait != first;
  }
  EXPECT_TRUE(differs);
}

}  // namespace
}  // namespace smd::storage
