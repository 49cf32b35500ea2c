#include "smd/trial/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd {
namespace {

using testing::ElementsAre;

const uint32_t kMean = Slot::reduction(2, false).id();
const uint32_t kAbsMean = Slot::reduction(2, true).id();

TEST(Slot, tells_value_and_reductions_apart) {
  EXPECT_TRUE(Slot::value().is_value());
  for (uint32_t op : {0u, 1u, 17u}) {
    for (bool abs : {false, true}) {
      const Slot slot = Slot::reduction(op, abs);
      EXPECT_FALSE(slot.is_value());
      EXPECT_EQ(slot.op(), op);
      EXPECT_EQ(slot.abs(), abs);
      EXPECT_EQ(Slot::from_id(slot.id()), slot);
    }
  }
}

TEST(Layout, finds_entries_whatever_the_order_of_writing) {
  const Layout layout({{7, kMean, 0, 10}, {3, 0, 10, 20}, {7, 0, 30, 5}, {7, kAbsMean, 35, 5}}, {});
  EXPECT_EQ(layout.find(7, Slot::value()), 1u);
  EXPECT_EQ(layout.entries()[*layout.find(7, Slot::from_id(kAbsMean))].offset, 35u);
  EXPECT_EQ(layout.find(7, Slot::reduction(9, false)), std::nullopt);
  EXPECT_EQ(layout.find(5, Slot::value()), std::nullopt);
  EXPECT_EQ(layout.entries_of(7).size(), 3u);
  EXPECT_THAT(layout.tensors(), ElementsAre(3, 7));
  EXPECT_THAT(layout.order(), ElementsAre(2, 0, 1, 3));
}

TEST(Layout, the_last_of_several_records_counts) {
  const Layout layout({{1, 0, 0, 10}, {1, 0, 10, 10}, {2, 0, 20, 1}, {1, 0, 30, 10}},
                      {{4, "a", {1}}, {4, "b", {2}}});
  ASSERT_EQ(layout.entries().size(), 2u);
  EXPECT_EQ(layout.entries()[0].offset, 30u);
  ASSERT_EQ(layout.shapes().size(), 1u);
  EXPECT_EQ(layout.shape_of(4)->original_name, "b");
}

TEST(Layout, a_tensor_may_have_nothing_but_a_shape) {
  const Layout layout({{1, 0, 0, 10}}, {{5, "x", {}}, {0, "y", {2, 3}}, {1, "z", {4}}});
  EXPECT_TRUE(layout.holds(5));
  EXPECT_TRUE(layout.entries_of(5).empty());
  EXPECT_EQ(layout.shape_of(0)->shape, (Shape{2, 3}));
  EXPECT_EQ(layout.shape_of(2), nullptr);
  EXPECT_FALSE(layout.holds(2));
  EXPECT_THAT(layout.tensors(), ElementsAre(0, 1, 5));
}

}  // namespace
}  // namespace smd
