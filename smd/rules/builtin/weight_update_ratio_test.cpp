#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "WeightUpdateRatio";

TEST(WeightUpdateRatio, fires_when_an_update_is_tiny) {
  expect_fires(kRule, "weight@0=[3,4]; weight@10=[3,4.00000004]", 10);
}

TEST(WeightUpdateRatio, is_silent_for_ordinary_updates) {
  expect_silent(kRule, "weight@0=[3,4]; weight@10=[3.3,3.6]");
}

TEST(WeightUpdateRatio, tells_norms_partner_and_ratio_per_step) {
  const Verdict verdict = judge(kRule, "weight@0=[3,4]; weight@10=[3,64]; weight@20=[3,64]");
  ASSERT_THAT(verdict.steps(), ElementsAre(10, 20));
  const Violation& hit = verdict.hits[0].violations.at(0);
  EXPECT_EQ(hit.metric, "update_ratio");
  EXPECT_NEAR(hit.value, 12, 1e-8);
  EXPECT_EQ(hit.op, Op::above);
  EXPECT_EQ(hit.threshold, 10);
  EXPECT_EQ(hit.context["step_before"], 0);
  EXPECT_EQ(hit.context["bound"], "large_threshold");
  EXPECT_EQ(hit.context["weight_norm"], 5);
  EXPECT_EQ(hit.context["update_norm"], 60);
  EXPECT_NEAR(hit.context["ratio_per_step"].get<double>(), 1.2, 1e-9);
  EXPECT_THAT(verdict.hits[0].message,
              HasSubstr("'weight' has moved by 12 of its size since step 0, more than 10."));
  EXPECT_EQ(verdict.hits[1].violations.at(0).op, Op::below);
  EXPECT_EQ(verdict.hits[1].violations.at(0).threshold, 1e-8);
}

TEST(WeightUpdateRatio, num_steps_chooses_the_earliest_partner_in_reach) {
  // One step each; 2 is compared with 0, 3 with 1.
  const Json two = {{"num_steps", 2}, {"large_threshold", 0.5}};
  const Verdict verdict = judge(kRule, "weight@0=[10]; weight@1=[13]; weight@2=[16]; weight@3=[16]",
                                {.parameters = two});
  ASSERT_THAT(verdict.steps(), ElementsAre(2));
  EXPECT_EQ(verdict.hits[0].violations.at(0).context["step_before"], 0);
  EXPECT_NEAR(verdict.hits[0].violations.at(0).value, 0.6, 1e-9);
  // Without it each step has the one before as its partner.
  EXPECT_TRUE(judge(kRule, "weight@0=[10]; weight@1=[13]; weight@2=[16]; weight@3=[17]",
                    {.parameters = {{"large_threshold", 0.5}}})
                  .hits.empty());
  // Too far apart: nothing to compare.
  EXPECT_THAT(judge(kRule, "weight@0=[1]; weight@10=[1]", {.parameters = {{"num_steps", "5"}}})
                  .missing.value_or(""),
              HasSubstr("two steps that are at most 5 apart"));
}

TEST(WeightUpdateRatio, one_step_is_not_judged) {
  const Verdict verdict = judge(kRule, "weight@0=[1]");
  EXPECT_TRUE(verdict.hits.empty());
  EXPECT_THAT(verdict.missing.value_or(""), HasSubstr("needs a weight at two steps"));
  EXPECT_THAT(judge(kRule, "x@0=[1]").missing.value_or(""),
              HasSubstr("needs weights (collection 'weights')"));
}

TEST(WeightUpdateRatio, train_counts_alone_if_weights_were_saved_in_it) {
  // The same weight in EVAL would be an update of zero.
  expect_silent(kRule, "weight@T0=[1]; weight@E1=[1]; weight@T2=[2]; weight@E3=[2]");
  expect_fires(kRule, "weight@E0=[1]; weight@E1=[1]", 1);
  expect_silent(kRule, "weight@E0=[1]; weight@T1=[1]; weight@E2=[1]; weight@T3=[2]");
  // Partners are steps of the mode.
  const Verdict verdict = judge(kRule, "weight@T0/0=[1]; weight@E5/0=[1]; weight@T50/7=[100]");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["step_before"], 0);
  EXPECT_NEAR(verdict.hits[0].violations[0].context["ratio_per_step"].get<double>(), 99. / 7, 1e-6);
}

TEST(WeightUpdateRatio, another_shape_is_a_violation) {
  const Verdict verdict = judge(kRule, "weight@0=[1,1]; weight@1=[1,1,1]; weight@2=[2,1,1]");
  ASSERT_THAT(verdict.steps(), ElementsAre(1));
  EXPECT_EQ(verdict.hits[0].violations.at(0).metric, "shape_changed");
  EXPECT_EQ(verdict.hits[0].violations.at(0).context["shape_before"], Json::array({2}));
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("has changed from (2) to (3)"));
}

TEST(WeightUpdateRatio, numbers_that_are_not_finite_are_skipped) {
  expect_silent(kRule, "weight@0=[nan,1]; weight@1=[1,1]; weight@2=[inf,1]; weight@3=[1,1]");
}

TEST(WeightUpdateRatio, weights_that_start_at_zero_fire_unless_skipped) {
  const std::string run = "weight@0=[0,0]; weight@1=[0.1,0]";
  expect_fires(kRule, run, 1);
  expect_silent(kRule, run, {.parameters = {{"skip_zero_init", "yes"}}});
  const Verdict verdict = judge(kRule, run);
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).value, 0.1 / 1e-9);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("'weight' was zero at step 0"));
  expect_silent(kRule, run, {.parameters = {{"epsilon", 1}}});
}

TEST(WeightUpdateRatio, frozen_weights_fire_unless_skipped) {
  const std::string run =
      "weight_a@0=[1]; weight_a@1=[1]; weight_b@0=[1]; weight_b@1=[1];"
      "gradient/weight_b@0=[0.5]; gradient/weight_b@1=[0.6]";
  const Verdict all = judge(kRule, run);
  EXPECT_EQ(all.hits.at(0).violation_count, 2u);
  const Verdict verdict = judge(kRule, run, {.parameters = {{"skip_frozen", true}}});
  ASSERT_EQ(verdict.hits.at(0).violation_count, 1u);
  EXPECT_EQ(verdict.hits[0].violations[0].tensor, "weight_b");
  EXPECT_THAT(judge(kRule, "weight@0=[1]; weight@1=[1]", {.parameters = {{"skip_frozen", true}}})
                  .missing.value_or(""),
              HasSubstr("needs gradients (collection 'gradients')"));
  // A gradient's reductions tell as well that it is there.
  expect_fires(kRule, "weight@0=[1]; weight@1=[1]; gradient/weight~mean@0=1", 1,
               {.parameters = {{"skip_frozen", true}}});
}

TEST(WeightUpdateRatio, small_and_complex_elements) {
  expect_fires(kRule, "weight@0:float16=[1,2]; weight@1:float16=[1,2]", 1);
  expect_silent(kRule, "weight@0:bfloat16=[1,2]; weight@1:bfloat16=[1,2.5]");
  expect_fires(kRule, "weight@0:complex64=[[3,4]]; weight@1:complex64=[[3,64]]", 1);
  expect_silent(kRule, "weight@0=[]; weight@1=[]; weight_b@0=[1]; weight_b@1=[2]");
}

TEST(WeightUpdateRatio, large_tensors_sum_all_their_blocks) {
  std::string ones = "[1";
  std::string twos = "[2";
  for (int i = 1; i < 9001; ++i) {
    ones += ",1";
    twos += ",2";
  }
  const Verdict verdict =
      judge(kRule, "weight@0:float32=" + ones + "];weight@1:float32=" + twos + "]",
            {.parameters = {{"large_threshold", 0.9}}});
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_NEAR(hit.value, 1, 1e-8);
  EXPECT_DOUBLE_EQ(hit.context["weight_norm"].get<double>(), std::sqrt(9001.0));
}

TEST(WeightUpdateRatio, workers_are_judged_as_told) {
  const std::string run =
      "weight@0=[1]; weight@1=[2]; weight@0#worker_1=[1]; weight@1#worker_1=[1]";
  expect_silent(kRule, run);
  const Verdict verdict = judge(kRule, run, {.parameters = {{"workers", "all"}}});
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).worker, "worker_1");
}

TEST(WeightUpdateRatio, reductions_are_not_enough) {
  EXPECT_THAT(judge(kRule, "weight~l2@0=1; weight~l2@1=1").missing.value_or(""),
              HasSubstr("needs the values of weights"));
}

TEST(WeightUpdateRatio, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"num_steps", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"epsilon", -1}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"small_threshold", 11}}),
              HasSubstr("small_threshold of WeightUpdateRatio is 11, above large_threshold"));
  EXPECT_THAT(creation_error(kRule, {{"large_threshold", "x"}}), HasSubstr("a number"));
  EXPECT_THAT(creation_error(kRule, {{"max_memory_mib", 0}}), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace smd::rules
