#include "smd/rules/confusion_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ConfusionCounts, counts_are_the_same_in_small_and_large_matrices) {
  for (int64_t classes : {3, 100000}) {
    ConfusionCounts counts(classes);
    ASSERT_TRUE(counts.add({.labels = {0, 1, 1, 2}, .predictions = {0, 1, 2, kNoClass}}).ok());
    ASSERT_TRUE(counts.add({.labels = {1}, .predictions = {2}}).ok());
    EXPECT_EQ(counts.at(1, 2), 2);
    EXPECT_EQ(counts.at(2, 2), 0);
    EXPECT_EQ(counts.label_total(2), 1);
    EXPECT_EQ(counts.prediction_total(2), 2);
    EXPECT_EQ(counts.total(), 5);
    EXPECT_EQ(counts.right_count(), 2);
    std::vector<std::tuple<int64_t, int64_t, int64_t>> seen;
    counts.for_each([&](int64_t l, int64_t p, int64_t n) { seen.emplace_back(l, p, n); });
    EXPECT_THAT(seen, ElementsAre(std::tuple(0, 0, 1), std::tuple(1, 1, 1), std::tuple(1, 2, 2)));
  }
}

TEST(ConfusionCounts, classes_out_of_range_are_refused_and_add_nothing) {
  ConfusionCounts counts(2);
  const Status label = counts.add({.labels = {0, 2}, .predictions = {0, 0}});
  ASSERT_FALSE(label.ok());
  EXPECT_THAT(label.error().message, HasSubstr("A label is 2; with 2 classes"));
  EXPECT_FALSE(counts.add({.labels = {0}, .predictions = {-1}}).ok());
  EXPECT_EQ(counts.total(), 0);
}

TEST(ConfusionCounts, the_largest_class_of_either_decides_the_width) {
  EXPECT_EQ(ConfusionCounts::classes_in({.labels = {0, 1}, .predictions = {3, kNoClass}}), 4);
  EXPECT_EQ(ConfusionCounts::classes_in({}), 0);
}

}  // namespace
}  // namespace smd::rules
