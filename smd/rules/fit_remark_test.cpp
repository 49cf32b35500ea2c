#include "smd/rules/fit_remark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace smd::rules {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string remark(const std::vector<double>& train, const std::vector<double>& validation,
                   bool rises = false) {
  std::vector<Step> steps;
  for (size_t i = 0; i < validation.size(); ++i) steps.push_back(static_cast<Step>(10 * i));
  return fit_remark({train, validation, steps, rises});
}

TEST(FitRemark, validation_that_got_worse_is_overfitting) {
  EXPECT_THAT(remark({1, 0.5, 0.2, 0.1}, {1, 0.8, 0.9, 1}), StartsWith("Overfitting"));
  EXPECT_THAT(remark({1, 0.5, 0.2, 0.1}, {1, 0.8, 0.9, 1}), HasSubstr("step 10 with 0.8"));
  EXPECT_THAT(remark({0.6, 0.8, 0.9}, {0.6, 0.7, 0.6}, true), StartsWith("Overfitting"));
}

TEST(FitRemark, a_gap_progress_and_a_plateau_are_told_apart) {
  EXPECT_THAT(remark({1, 0.5, 0.4}, {1, 0.7, 0.6}), StartsWith("A gap"));
  EXPECT_THAT(remark({1, 0.8, 0.6}, {1, 0.8, 0.62}), StartsWith("Still improving"));
  EXPECT_THAT(remark({1, 0.6, 0.6, 0.6}, {1, 0.62, 0.62, 0.62}), StartsWith("Settled"));
  EXPECT_THAT(remark({0.6, 0.7, 0.8}, {0.6, 0.7, 0.79}, true), StartsWith("Still improving"));
}

TEST(FitRemark, few_or_broken_numbers_tell_nothing) {
  EXPECT_THAT(remark({1}, {1, 2}), StartsWith("There are too few"));
  EXPECT_THAT(remark({1, NAN}, {1, 2}), StartsWith("There are too few"));
}

}  // namespace
}  // namespace smd::rules
