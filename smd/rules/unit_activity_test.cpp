#include "smd/rules/unit_activity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace smd::rules {
namespace {

TEST(UnitActivity, the_first_axis_holds_samples) {
  const auto layout = unit_layout({4, 2, 3}, std::nullopt);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->samples(), 4);
  EXPECT_EQ(layout->units, 6);
  EXPECT_EQ(unit_layout({5}, std::nullopt)->units, 5);
  EXPECT_EQ(unit_layout({5}, std::nullopt)->samples(), 1);
  EXPECT_EQ(unit_layout({}, std::nullopt)->units, 1);
}

TEST(UnitActivity, an_axis_of_units_leaves_the_others_to_samples) {
  EXPECT_EQ(unit_layout({4, 2, 3}, 1)->units, 2);
  EXPECT_EQ(unit_layout({4, 2, 3}, 1)->samples(), 12);
  EXPECT_EQ(unit_layout({4, 2, 3}, -1)->units, 3);
  EXPECT_EQ(unit_layout({4, 2, 3}, -1)->samples(), 8);
  EXPECT_FALSE(unit_layout({4, 2, 3}, 3));
  EXPECT_FALSE(unit_layout({4, 2, 3}, -4));
  EXPECT_FALSE(unit_layout({}, 0));
}

TEST(UnitActivity, counts_are_those_of_a_plain_loop_over_many_blocks) {
  const Shape shape = {13, 37, 29};
  std::vector<float> values(13 * 37 * 29);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.7));
  }
  values[5000] = std::numeric_limits<float>::quiet_NaN();
  values[5001] = std::numeric_limits<float>::infinity();
  const OwnedTensor tensor = own(values, DType::float32, shape);
  for (const std::optional<int64_t> axis : {std::optional<int64_t>(), std::optional<int64_t>(0),
                                            std::optional<int64_t>(1), std::optional<int64_t>(2)}) {
    const auto layout = unit_layout(shape, axis);
    ASSERT_TRUE(layout);
    for (const ActiveRange& range :
         {ActiveRange{.above = 0}, ActiveRange{.above = -0.5, .below = 0.25}}) {
      std::vector<int64_t> expected(static_cast<size_t>(layout->units), 0);
      for (size_t i = 0; i < values.size(); ++i) {
        const auto unit = static_cast<int64_t>(i) / layout->inner % layout->units;
        const bool active = values[i] > range.above && (!range.below || values[i] < *range.below);
        expected[static_cast<size_t>(unit)] += active ? 1 : 0;
      }
      const auto counts = count_active(tensor.view(), *layout, range);
      ASSERT_TRUE(counts.ok());
      EXPECT_EQ(*counts, expected) << axis.value_or(-1);
    }
  }
}

TEST(UnitActivity, complex_numbers_have_no_order) {
  const OwnedTensor tensor = own(std::vector<float>{1, 2}, DType::complex64, {1});
  EXPECT_FALSE(has_order(DType::complex64));
  EXPECT_EQ(count_active(tensor.view(), {}, {}).error().code, ErrorCode::unsupported);
}

TEST(UnitActivity, inactive_is_below_the_percentage) {
  EXPECT_FALSE(is_inactive(1, 100, 1));
  EXPECT_TRUE(is_inactive(1, 101, 1));
  EXPECT_TRUE(is_inactive(0, 5, 1));
  EXPECT_FALSE(is_inactive(0, 5, 0));
}

}  // namespace
}  // namespace smd::rules
