#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "PoorWeightInitialization";

std::string losses(int count, std::string_view value = "1") {
  std::string steps;
  std::string values;
  for (int i = 0; i < count; ++i) {
    steps += (i > 0 ? "," : "") + std::to_string(i);
    values += (i > 0 ? "," : "") + std::string(value);
  }
  return "loss@" + steps + "=" + values;
}

TEST(PoorWeightInitialization, fires_when_variances_are_far_apart) {
  expect_fires(kRule, "a_relu_input@0=[-1,1]; b_relu_input@0=[-4,4]", 0);
}

TEST(PoorWeightInitialization, is_silent_for_a_good_start) {
  std::string run;
  for (int i = 0; i < 4; ++i) {
    const std::string at = "@" + std::to_string(i) + "=";
    run += "a_relu_input" + at + "[-1,1]; b_relu_input" + at + "[-3,3]; gradient/w" + at +
           "[-0.01,0.01];";
  }
  expect_silent(kRule, run + "loss@0,1,2,3=1.0,0.9,0.8,0.7");
}

TEST(PoorWeightInitialization, tells_both_extreme_tensors) {
  const Verdict verdict =
      judge(kRule, "a_relu_input@0=[-1,1]; b_relu_input@0=[-4,4]; c_relu_input@0=[-2,2]");
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "variance_ratio");
  EXPECT_EQ(hit.tensor, "b_relu_input");
  EXPECT_EQ(hit.value, 16);
  EXPECT_EQ(hit.threshold, 10);
  EXPECT_EQ(hit.context["largest_variance"], 16);
  EXPECT_EQ(hit.context["smallest_variance"], 1);
  EXPECT_EQ(hit.context["smallest_tensor"], "a_relu_input");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("a factor of 16 apart"));
}

TEST(PoorWeightInitialization, odd_variances) {
  expect_silent(kRule, "a_relu_input@0=[-1,1]");
  expect_fires(kRule, "a_relu_input@0=[0,0]; b_relu_input@0=[-1,1]", 0);
  expect_silent(kRule, "a_relu_input@0=[0,0]; b_relu_input@0=[0,0]");
  expect_silent(kRule, "a_relu_input@0=[nan,0]; b_relu_input@0=[-1,1]; c_relu_input@0=[inf,1]");
  // Exactly the threshold.
  expect_silent(kRule, "a_relu_input@0=[-1,1]; b_relu_input@0=[-4,4]",
                {.parameters = {{"threshold", "16"}}});
}

TEST(PoorWeightInitialization, saved_variances_are_enough_for_the_inputs) {
  expect_fires(kRule, "a_relu_input~std@0=1; b_relu_input~variance@0=16", 0);
  const Verdict verdict = judge(kRule, "a_relu_input~mean@0=1");
  EXPECT_THAT(verdict.missing.value_or(""), HasSubstr("the values or variance of inputs"));
}

TEST(PoorWeightInitialization, inputs_are_found_by_pattern) {
  expect_fires(kRule, "x@2=[-1,1]; y@2=[-9,9]", 2,
               {.parameters = {{"activation_inputs_regex", "^(x|y)$"}}});
  EXPECT_THAT(judge(kRule, "x@2=[-1,1]").missing.value_or(""),
              HasSubstr("needs inputs of activations, gradients or losses (names with "
                        "'.*relu_input')"));
}

TEST(PoorWeightInitialization, gradients_without_spread_fire) {
  const Verdict verdict =
      judge(kRule, "gradient/a@3=[0.5,0.5,0.5]; gradient/b@3=[-1,1]; gradient/c@3=[0,0.0005]");
  const auto& hits = verdict.hits.at(0).violations;
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].tensor, "gradient/a");
  EXPECT_EQ(hits[0].metric, "gradient_spread");
  EXPECT_EQ(hits[0].value, 0);
  EXPECT_EQ(hits[0].op, Op::below);
  EXPECT_EQ(hits[0].threshold, 0.001);
  EXPECT_EQ(hits[1].tensor, "gradient/c");
  EXPECT_NEAR(hits[1].value, 0.00045, 1e-12);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("and so are 1 more gradients"));
  // Single outliers are no spread: 100 equal numbers and one.
  std::string outlier = "gradient/a@0=[100";
  for (int i = 0; i < 100; ++i) outlier += ",0";
  expect_fires(kRule, outlier + "]", 0);
  expect_silent(kRule, "gradient/a@0=[nan,0]; gradient/b@0=[-1,1]");
  expect_silent(kRule, "gradient/a@0=[0,0.0005]", {.parameters = {{"distribution_range", 1e-5}}});
}

TEST(PoorWeightInitialization, the_spread_can_be_relative) {
  const Json relative = {{"distribution_relative", true}};
  expect_silent(kRule, "gradient/a@0=[-1e-6,1e-6]", {.parameters = relative});
  expect_fires(kRule, "gradient/a@0=[-1e-6,1e-6]", 0);
  expect_fires(kRule, "gradient/a@0=[5,5.0001]", 0, {.parameters = relative});
  expect_fires(kRule, "gradient/a@0=[0,0]", 0, {.parameters = relative});
}

TEST(PoorWeightInitialization, gradients_need_values) {
  EXPECT_TRUE(judge(kRule, "gradient/a~abs_mean@0=0").missing.has_value());
}

TEST(PoorWeightInitialization, a_loss_that_does_not_fall_fires_after_patience) {
  // The first one is the best so far; five later ones do not fall below it.
  expect_fires(kRule, losses(10), 5);
  expect_fires(kRule, losses(10), 2, {.parameters = {{"patience", "2"}}});
  expect_silent(kRule, "loss@0,1,2,3,4,5,6,7=1,1,1,1,1,0.9,0.9,0.9");
  expect_fires(kRule, losses(10, "nan"), 4);
  // Noise below the best resets, noise above does not.
  expect_fires(kRule, "loss@0,1,2,3,4,5,6=1,2,1.5,1.2,1.1,1.05,0.5", 5);
  const Verdict verdict = judge(kRule, "loss@0,1,2,3=2,3,1,4", {.parameters = {{"patience", 1}}});
  EXPECT_THAT(verdict.steps(), ElementsAre(1, 3));
  const Violation& hit = verdict.hits[1].violations.at(0);
  EXPECT_EQ(hit.metric, "steps_without_progress");
  EXPECT_EQ(hit.value, 1);
  EXPECT_EQ(hit.context["best_loss"], 1);
  EXPECT_EQ(hit.context["losses"], Json::array({2, 3, 1, 4}));
}

TEST(PoorWeightInitialization, losses_of_other_modes_do_not_count) {
  expect_silent(kRule, "loss@T0=1; loss@E1=2; loss@T2=0.9; loss@E3=1.9; loss@T4=0.8; loss@E5=1.8",
                {.parameters = {{"patience", 1}}});
}

TEST(PoorWeightInitialization, only_the_first_steps_with_something_to_judge_count) {
  const std::string run = "x@0=[1]; loss@100,200,300=3,2,1; a_relu_input@300=[-1,1];";
  expect_fires(kRule, run + "a_relu_input@400=[-1,1]; b_relu_input@400=[-9,9]", 400,
               {.parameters = {{"steps", "4"}}});
  expect_silent(kRule, run + "a_relu_input@400=[-1,1]; b_relu_input@400=[-9,9]",
                {.parameters = {{"steps", 3}}});
  expect_silent(kRule, run + "a_relu_input@400=[-1,1]; b_relu_input@400=[-9,9]",
                {.parameters = {{"steps", "3.0"}}});
}

TEST(PoorWeightInitialization, workers_are_compared_with_themselves) {
  const std::string run =
      "a_relu_input@0=[-1,1]; b_relu_input@0=[-1,1]; "
      "a_relu_input@0#worker_1=[-9,9]; b_relu_input@0#worker_1=[-9,9]";
  expect_silent(kRule, run, {.parameters = {{"workers", "all"}}});
  const Verdict verdict =
      judge(kRule, run + "; c_relu_input@0#worker_1=[-1,1]; c_relu_input@0=[-1,1]",
            {.parameters = {{"workers", "all"}}});
  ASSERT_EQ(verdict.hits.at(0).violation_count, 1u);
  EXPECT_EQ(verdict.hits[0].violations[0].worker, "worker_1");
}

TEST(PoorWeightInitialization, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"steps", 2.5}}),
              HasSubstr("steps of PoorWeightInitialization is '2.5'; it must be a whole number."));
  EXPECT_THAT(creation_error(kRule, {{"steps", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"threshold", "big"}}), HasSubstr("a number"));
  EXPECT_THAT(creation_error(kRule, {{"activation_inputs_regex", "("}}), HasSubstr("("));
}

}  // namespace
}  // namespace smd::rules
