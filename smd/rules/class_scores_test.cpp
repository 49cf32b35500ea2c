#include "smd/rules/class_scores.h"

#include <gtest/gtest.h>

namespace smd::rules {
namespace {

TEST(ClassScores, means_are_micro_macro_and_weighted) {
  ConfusionCounts counts(2);
  // Class 0: 3 of 4 right; class 1: 1 of 2 right.
  ASSERT_TRUE(counts.add({.labels = {0, 0, 0, 0, 1, 1}, .predictions = {0, 0, 0, 1, 1, 0}}).ok());
  const double labels[] = {0, 1};
  const Json out = class_scores(counts, labels);
  EXPECT_DOUBLE_EQ(out["accuracy"].get<double>(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(out["micro"]["precision"].get<double>(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(out["micro"]["f1"].get<double>(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(out["classes"][0]["precision"].get<double>(), 0.75);
  EXPECT_DOUBLE_EQ(out["classes"][1]["precision"].get<double>(), 0.5);
  EXPECT_DOUBLE_EQ(out["macro"]["recall"].get<double>(), (0.75 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(out["weighted"]["recall"].get<double>(), (4 * 0.75 + 2 * 0.5) / 6);
  EXPECT_DOUBLE_EQ(out["weighted"]["f1"].get<double>(), (4 * 0.75 + 2 * 0.5) / 6);
  EXPECT_EQ(out["classes"][1]["support"], 2);
}

TEST(ClassScores, nothing_is_divided_by_zero) {
  ConfusionCounts counts(3);
  ASSERT_TRUE(counts.add({.labels = {0, 0}, .predictions = {1, kNoClass}}).ok());
  const double labels[] = {0, 1, 2};
  const Json out = class_scores(counts, labels);
  EXPECT_EQ(out["accuracy"], 0);
  EXPECT_EQ(out["classes"][0]["f1"], 0);
  EXPECT_EQ(out["classes"][2]["precision"], 0);
  EXPECT_EQ(out["macro"]["f1"], 0);
}

}  // namespace
}  // namespace smd::rules
