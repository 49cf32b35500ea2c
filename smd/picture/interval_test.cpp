#include "smd/picture/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace smd {
namespace {

constexpr double kMost = std::numeric_limits<double>::max();

TEST(Interval, is_empty_until_something_is_added) {
  Interval one;
  EXPECT_TRUE(one.empty());
  one.add(-3);
  EXPECT_FALSE(one.empty());
  one.add(5);
  one.add(1);
  EXPECT_EQ(one.low, -3);
  EXPECT_EQ(one.high, 5);
  EXPECT_EQ(one.half_length(), 4);
}

TEST(Interval, tells_where_a_value_lies_and_back) {
  const Interval one{-3, 5};
  EXPECT_EQ(one.part(-3), 0);
  EXPECT_EQ(one.part(1), 0.5);
  EXPECT_EQ(one.part(5), 1);
  EXPECT_EQ(one.part(9), 1.5);
  EXPECT_EQ(one.at(0.25), -1);
}

TEST(Interval, all_doubles_are_no_more_than_fits) {
  Interval all{-kMost, kMost};
  EXPECT_EQ(all.half_length(), kMost);
  EXPECT_EQ(all.part(0), 0.5);
  EXPECT_EQ(all.at(1), kMost);
  all.widen(kMost);
  EXPECT_EQ(all.low, -kMost);
  EXPECT_EQ(all.high, kMost);
}

TEST(Interval, widens_on_both_sides) {
  Interval one{2, 2};
  one.widen(1);
  EXPECT_EQ(one.low, 1);
  EXPECT_EQ(one.high, 3);
}

}  // namespace
}  // namespace smd
