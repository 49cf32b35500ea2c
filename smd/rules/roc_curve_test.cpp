#include "smd/rules/roc_curve.h"

#include <gtest/gtest.h>

#include <cmath>

namespace smd::rules {
namespace {

double auc_of(const std::vector<bool>& labels, const std::vector<double>& scores) {
  const auto curve = roc_curve(labels, scores);
  return curve ? curve->auc : -1;
}

TEST(RocCurve, the_area_is_the_share_of_pairs_in_the_right_order) {
  EXPECT_DOUBLE_EQ(auc_of({false, false, true, true}, {0.1, 0.4, 0.35, 0.8}), 0.75);
  EXPECT_EQ(auc_of({false, true}, {0, 1}), 1);
  EXPECT_EQ(auc_of({false, true}, {1, 0}), 0);
}

TEST(RocCurve, equal_scores_count_half) {
  EXPECT_EQ(auc_of({false, true, false, true}, {0.5, 0.5, 0.5, 0.5}), 0.5);
  EXPECT_DOUBLE_EQ(auc_of({false, true, true}, {0.5, 0.5, 0.9}), 0.75);
}

TEST(RocCurve, points_go_from_nothing_to_everything) {
  const auto curve = roc_curve({false, true, true}, std::vector<double>{0.2, 0.2, 0.7});
  ASSERT_TRUE(curve.has_value());
  ASSERT_EQ(curve->points.size(), 3u);
  EXPECT_EQ(curve->points[0].threshold, INFINITY);
  EXPECT_EQ(curve->points[1].true_positive_rate, 0.5);
  EXPECT_EQ(curve->points[1].false_positive_rate, 0);
  EXPECT_EQ(curve->points[2].true_positive_rate, 1);
  EXPECT_EQ(curve->points[2].false_positive_rate, 1);
}

TEST(RocCurve, both_classes_are_needed_and_nan_is_left_out) {
  EXPECT_EQ(auc_of({true, true}, {0, 1}), -1);
  EXPECT_EQ(auc_of({}, {}), -1);
  EXPECT_EQ(auc_of({true, false, false}, {1, 0, NAN}), 1);
  EXPECT_EQ(auc_of({true, false}, {1, NAN}), -1);
}

TEST(RocCurve, thinning_keeps_both_ends) {
  std::vector<bool> labels;
  std::vector<double> scores;
  for (int i = 0; i < 1000; ++i) {
    labels.push_back(i % 3 == 0);
    scores.push_back(i);
  }
  const auto curve = roc_curve(labels, scores);
  const auto few = thinned(*curve, 100);
  ASSERT_EQ(few.size(), 100u);
  EXPECT_EQ(few.front().threshold, INFINITY);
  EXPECT_EQ(few.back().true_positive_rate, 1);
  EXPECT_EQ(thinned(*curve, 5000).size(), curve->points.size());
}

}  // namespace
}  // namespace smd::rules
