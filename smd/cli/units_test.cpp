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

TEST(Units, numbers_are_short_but_whole_ones_exact) {
  EXPECT_EQ(number_text(3), "3");
  EXPECT_EQ(number_text(-2147483648.0), "-2147483648");
  EXPECT_EQ(number_text(0.1234567), "0.123457");
  EXPECT_EQ(number_text(1e300), "1e+300");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Units, times_are_told_in_utc) {
  EXPECT_EQ(utc_time(0), "1970-01-01 00:00:00 UTC");
  EXPECT_EQ(utc_time(1600000000.5), "2020-09-13 12:26:40 UTC");
  EXPECT_EQ(utc_time(-1), "?");
  EXPECT_EQ(utc_time(1e300), "?");
  EXPECT_EQ(utc_time(std::numeric_limits<double>::quiet_NaN()), "?");
}

}  // namespace
}  // namespace smd::cli
