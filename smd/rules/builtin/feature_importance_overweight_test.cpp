#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "FeatureImportanceOverweight";

std::string importances(int step, const std::vector<double>& shares) {
  std::string out;
  for (size_t i = 0; i < shares.size(); ++i) {
    out += fmt::format("feature_importance/weight/f{}@{}={};", i, step, shares[i]);
  }
  return out;
}

TEST(FeatureImportanceOverweight, fires_when_three_features_hold_most) {
  expect_fires(kRule, importances(5, {0.5, 0.2, 0.15, 0.1, 0.05}), 5);
}

TEST(FeatureImportanceOverweight, is_silent_when_importance_is_spread) {
  expect_silent(kRule, importances(5, {0.25, 0.25, 0.2, 0.2, 0.1}));
}

TEST(FeatureImportanceOverweight, tells_the_leading_features) {
  const Verdict verdict = judge(kRule, importances(5, {1, 2, 4, 10, 3}));
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.tensor, "feature_importance/weight/f3");
  EXPECT_EQ(hit.value, 0.85);
  EXPECT_EQ(hit.threshold, 0.8);
  EXPECT_EQ(hit.context["top_features"][0]["feature"], "f3");
  EXPECT_EQ(hit.context["top_features"][0]["share"], 0.5);
  EXPECT_EQ(hit.context["top_features"][2]["feature"], "f4");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("led by 'f3', hold 85 %"));
}

TEST(FeatureImportanceOverweight, other_kinds_of_importance_are_not_mixed_in) {
  expect_silent(kRule, importances(5, {0.25, 0.25, 0.2, 0.2, 0.1}) +
                           "feature_importance/gain/f0@5=1; feature_importance/gain/f1@5=0");
  expect_fires(kRule, "a/gain/f0@5=1; a/gain/f1@5=0.01; a/gain/f2@5=0.01", 5,
               {.parameters = {{"tensor_regex", "gain"}, {"nfeatures", "1"}}});
}

TEST(FeatureImportanceOverweight, few_features_are_judged_in_compat_only) {
  expect_silent(kRule, importances(0, {0.5, 0.3, 0.2}));
  expect_fires(kRule, importances(0, {0.5, 0.3, 0.2}), 0, {.parameters = {{"compat", true}}});
}

TEST(FeatureImportanceOverweight, negative_numbers_count_as_zero_and_no_total_is_skipped) {
  expect_fires(kRule, importances(1, {0.5, -9, -9, 0.1, 0.1}), 1);
  expect_silent(kRule, importances(1, {0, 0, 0, 0, -1}));
  expect_silent(kRule, importances(1, {INFINITY, 0, 0, 0, 1}));
}

TEST(FeatureImportanceOverweight, the_threshold_itself_is_accepted) {
  expect_silent(kRule, importances(1, {2, 1, 1, 1}), {.parameters = {{"threshold", 0.8}}});
  expect_fires(kRule, importances(1, {2, 1, 1, 1}), 1, {.parameters = {{"threshold", 0.79}}});
}

TEST(FeatureImportanceOverweight, tells_what_it_needs) {
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("feature_importance/weight"));
}

TEST(FeatureImportanceOverweight, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"threshold", 1.5}}), HasSubstr("at most 1"));
  EXPECT_THAT(creation_error(kRule, {{"nfeatures", 0}}), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace smd::rules
