#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "VanishingGradient";

TEST(VanishingGradient, fires_at_the_step_of_a_small_gradient) {
  expect_fires(kRule, "gradient/a@0=[1e-3,-1e-3]; gradient/a@10=[5e-8,-5e-8]", 10);
}

TEST(VanishingGradient, is_silent_when_the_mean_equals_the_threshold) {
  expect_silent(kRule, "gradient/a@0=[1e-7,-1e-7]; gradient/a@10=[1e-7,-1e-7]");
}

TEST(VanishingGradient, a_zero_gradient_fires_and_nan_and_infinity_do_not) {
  expect_fires(kRule, "gradient/a@3=[0,0]", 3);
  expect_silent(kRule, "gradient/a@0=[nan,0]; gradient/b@0=[inf,0]; gradient/c@0=[1,1]");
}

TEST(VanishingGradient, any_tensor_suffices_and_all_are_listed) {
  const Verdict verdict =
      judge(kRule, "gradient/a@1=[1,1]; gradient/b@1=[0,1e-9]; gradient/c@1=[0,0]");
  ASSERT_EQ(verdict.hits.size(), 1u);
  const Hit& hit = verdict.hits[0];
  EXPECT_EQ(hit.violation_count, 2u);
  EXPECT_EQ(hit.violations[0].tensor, "gradient/b");
  EXPECT_EQ(hit.violations[0].worker, "worker_0");
  EXPECT_EQ(hit.violations[0].metric, "abs_mean");
  EXPECT_DOUBLE_EQ(hit.violations[0].value, 5e-10);
  EXPECT_EQ(hit.violations[0].op, Op::below);
  EXPECT_EQ(hit.violations[0].threshold, 1e-7);
  EXPECT_EQ(hit.violations[0].context["abs_max"], 1e-9);
  EXPECT_EQ(hit.violations[0].context["zero_share"], 0.5);
  EXPECT_EQ(hit.violations[0].context["order"], 1);
  EXPECT_EQ(hit.violations[1].tensor, "gradient/c");
}

TEST(VanishingGradient, other_tensors_are_not_judged) {
  const Verdict verdict = judge(kRule, "weight@0=[0,0]");
  EXPECT_EQ(verdict.status, RuleStatus::no_issues_found);
  EXPECT_THAT(verdict.missing.value_or(""), HasSubstr("needs gradients (collection 'gradients')"));
}

TEST(VanishingGradient, saved_reductions_are_enough_if_they_determine_the_mean) {
  expect_fires(kRule, "gradient/a~abs_mean@4=5e-8", 4);
  expect_fires(kRule, "gradient/a~l1@4=1e-7; gradient/a~shape@4=[2]", 4);
  const std::string matrix = "gradient/a~l1@4=1e-7; gradient/a~shape@4=[2,1]";
  EXPECT_THAT(judge(kRule, matrix).missing.value_or(""), HasSubstr("values or abs_mean"));
  EXPECT_TRUE(judge(kRule, "gradient/a~l1@4=1e-7").missing.has_value());
  EXPECT_TRUE(judge(kRule, "gradient/a~mean@4=0").missing.has_value());
}

TEST(VanishingGradient, half_precision_is_widened) {
  // Twice the smallest float16 is 1.19e-7.
  expect_silent(kRule, "gradient/a@0:float16=[1.1920928955078125e-07,1.1920928955078125e-07]");
  expect_fires(kRule, "gradient/a@0:float16=[5.9604644775390625e-08,5.9604644775390625e-08]", 0);
}

TEST(VanishingGradient, the_first_worker_is_judged_unless_told_otherwise) {
  const std::string run = "gradient/a@2=[1,1]; gradient/a@2#worker_1=[0,0]";
  expect_silent(kRule, run);
  expect_fires(kRule, run, 2, {.parameters = {{"workers", "all"}}});
  expect_fires(kRule, run, 2, {.parameters = {{"workers", "worker_1"}}});
  expect_fires(kRule, "gradient/a@2#worker_1=[0,0]; x@2=[1]", 2);
  const Verdict verdict = judge(kRule, run, {.parameters = {{"workers", "all"}}});
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).worker, "worker_1");
  EXPECT_THAT(verdict.finding->workers, ElementsAre("worker_1"));
}

TEST(VanishingGradient, excluded_and_empty_tensors_are_left_out) {
  const std::string run = "gradient/a@0=[1]; gradient/embedding@0=[0,0]; gradient/none@0=[]";
  expect_fires(kRule, run, 0);
  expect_silent(kRule, run, {.parameters = {{"exclude_regex", "embed"}}});
}

TEST(VanishingGradient, the_threshold_is_a_number_or_its_text) {
  const std::string run = "gradient/a@0=[0.5,0.5]";
  expect_fires(kRule, run, 0, {.parameters = {{"threshold", 0.6}}});
  expect_fires(kRule, run, 0, {.parameters = {{"threshold", " 6e-1 "}}});
  expect_silent(kRule, run, {.parameters = {{"threshold", "None"}}});
  EXPECT_THAT(creation_error(kRule, {{"threshold", "small"}}),
              HasSubstr("threshold of VanishingGradient is 'small'; it must be a number."));
}

}  // namespace
}  // namespace smd::rules
