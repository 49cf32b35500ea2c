#include "smd/rules/evaluation_means.h"

#include <gtest/gtest.h>

#include <limits>

// The rest is tested with the rules that compare evaluations with training: overfit_test.cpp and
// generalization_gap_test.cpp.

namespace smd::rules {
namespace {

TEST(LossMean, leaves_out_what_is_not_finite_and_remembers_that_it_was_there) {
  LossMean mean;
  EXPECT_FALSE(mean.has_any);
  mean.add(std::numeric_limits<double>::quiet_NaN());
  mean.add(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(mean.has_any);
  EXPECT_EQ(mean.count, 0);
  mean.add(1);
  mean.add(2);
  EXPECT_EQ(mean.count, 2);
  EXPECT_EQ(mean.value(), 1.5);
}

TEST(EvaluationMeans, only_an_evaluation_can_be_ended) {
  const EvaluationMeans means;
  for (const Mode mode : kModes) EXPECT_FALSE(means.is_ended_by(mode));
}

}  // namespace
}  // namespace smd::rules
