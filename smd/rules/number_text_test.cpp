#include "smd/rules/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace smd::rules {
namespace {

TEST(NumberText, reads_as_people_write_it) {
  EXPECT_EQ(number_text(3), "3");
  EXPECT_EQ(number_text(0.25), "0.25");
  EXPECT_EQ(number_text(1.23456789e-5), "1.23457e-05");
  EXPECT_EQ(number_text(2.0 / 3, 3), "0.667");
}

TEST(NumberText, a_nan_has_no_sign) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(number_text(nan), "NaN");
  EXPECT_EQ(number_text(std::copysign(nan, -1)), "NaN");
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
}

}  // namespace
}  // namespace smd::rules
