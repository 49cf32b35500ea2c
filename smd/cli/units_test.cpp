#include "smd/cli/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace smd::cli {
namespace {

TEST(Units, bytes_have_two_digits_or_more) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(35 << 20), "35 MiB");
  EXPECT_EQ(human_bytes((uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(std::numeric_limits<uint64_t>::max()), "16 EiB");
}

TEST(Units, seconds_are_spelled_by_their_size) {
  EXPECT_EQ(human_secs(0.26), "0.3 s");
  EXPECT_EQ(human_secs(42.4), "42 s");
  EXPECT_EQ(human_secs(125), "2 min 5 s");
  EXPECT_EQ(human_secs(12000), "3 h 20 min");
  EXPECT_EQ(human_secs(std::numeric_limits<double>::infinity()), "?");
}

TEST(Units, one_is_not_many) {
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(2, "step"), "2 steps");
}

}  // namespace
}  // namespace smd::cli
