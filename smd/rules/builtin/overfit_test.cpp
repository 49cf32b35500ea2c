#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "Overfit";

TEST(Overfit, fires_when_validation_is_a_fifth_above_training) {
  expect_fires(kRule, "loss@T0,T1,T2=0.5,0.5,0.5; loss@E3,E4=0.6,0.6; loss@T5=0.5", 5);
}

TEST(Overfit, is_silent_inside_of_the_band) {
  expect_silent(kRule, "loss@T0,T1,T2=0.5,0.5,0.5; loss@E3,E4=0.54,0.55; loss@T5=0.5");
}

TEST(Overfit, an_evaluation_at_the_end_is_judged_at_its_last_step) {
  const std::string run = "loss@T0,T1=0.5,0.5; loss@E3,E4=0.6,0.6";
  expect_fires(kRule, run, 4);
  const Verdict verdict = judge(kRule, run);
  EXPECT_EQ(verdict.hits.at(0).step.mode, Mode::eval);
  EXPECT_EQ(verdict.hits.at(0).step.mode_step, 1);
  EXPECT_EQ(verdict.finding->tensors.at(0).tensor, "loss");
}

TEST(Overfit, tells_means_ratio_and_lengths) {
  const Verdict verdict = judge(kRule, "loss@T0,T1=0.4,0.6; loss@E3,E4,E5=0.6,0.7,0.8; x@T6=1");
  ASSERT_THAT(verdict.steps(), ElementsAre(6));
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "ratio");
  EXPECT_NEAR(hit.value, 0.4, 1e-12);
  EXPECT_EQ(hit.threshold, 0.1);
  EXPECT_EQ(hit.worker, "worker_0");
  EXPECT_DOUBLE_EQ(hit.context["train_mean"].get<double>(), 0.5);
  EXPECT_NEAR(hit.context["validation_mean"].get<double>(), 0.7, 1e-12);
  EXPECT_EQ(hit.context["train_count"], 2);
  EXPECT_EQ(hit.context["validation_count"], 3);
  EXPECT_EQ(hit.context["counter"], 1);
  EXPECT_THAT(verdict.hits.at(0).message, HasSubstr("worse by 40 %"));
}

TEST(Overfit, patience_counts_evaluations_in_a_row) {
  const std::string run = "loss@T0,E1,T2,E3,T4,E5,T6,E7,T8=1,2,1,1,1,2,1,2,1";
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(2, 6, 8));
  EXPECT_THAT(judge(kRule, run, {.parameters = {{"patience", "2"}}}).steps(), ElementsAre(8));
}

TEST(Overfit, without_training_in_between_the_counter_is_kept) {
  // The middle evaluation is closed by a step of another mode.
  const std::string run = "loss@T0,E1=1,2; x@P2=1; loss@E3=1; x@P4=1; loss@T5,E6=1,2; x@P7=1";
  EXPECT_THAT(judge(kRule, run, {.parameters = {{"patience", 2}}}).steps(), ElementsAre(7));
}

TEST(Overfit, only_training_since_the_evaluation_before_counts) {
  expect_silent(kRule, "loss@T0,E1,T2,E3,T4=1,1,5,5,1");
  expect_fires(kRule, "loss@T0,E1,T2,E3,T4=5,5,1,2,1", 4);
}

TEST(Overfit, earlier_steps_are_left_out) {
  const std::string run = "loss@T0,E1,T2,E3,T4=1,2,1,1.05,1";
  expect_fires(kRule, run, 2);
  expect_silent(kRule, run, {.parameters = {{"start_step", 2}}});
}

TEST(Overfit, a_training_loss_of_zero_is_exceeded_by_any_other) {
  expect_fires(kRule, "loss@T0,E1,T2=0,1e-9,0", 2);
  expect_silent(kRule, "loss@T0,E1,T2=0,0,0");
  expect_silent(kRule, "loss@T0,E1,T2=0,-1,0");
}

TEST(Overfit, negative_losses_keep_their_direction) {
  expect_fires(kRule, "loss@T0,E1,T2=-2,-1,-2", 2);
  expect_silent(kRule, "loss@T0,E1,T2=-1,-2,-1");
}

TEST(Overfit, numbers_that_are_not_finite_are_dropped) {
  expect_fires(kRule, "loss@T0,T1,E2,E3,T4=1,nan,inf,2,1", 4);
  EXPECT_THAT(judge(kRule, "loss@T0,E1,T2=1,nan,1").missing.value_or(""), HasSubstr("no such two"));
}

TEST(Overfit, each_loss_has_its_own_counter) {
  const Verdict verdict =
      judge(kRule, "a_loss@T0,E1,T2,E3=1,2,1,1; b_loss@T0,E1,T2,E3=1,1,1,2; x@T4=1",
            {.parameters = {{"patience", 1}}});
  ASSERT_THAT(verdict.steps(), ElementsAre(2, 4));
  EXPECT_EQ(verdict.hits[0].violations.at(0).tensor, "a_loss");
  EXPECT_EQ(verdict.hits[1].violations.at(0).tensor, "b_loss");
  EXPECT_EQ(judge(kRule, "a_loss@T0,E1,T2,E3=1,2,1,1; b_loss@T0,E1,T2,E3=1,1,1,2; x@T4=1",
                  {.parameters = {{"patience", 2}}})
                .hits.size(),
            0u);
}

TEST(Overfit, losses_of_one_evaluation_are_listed_by_name) {
  const Verdict verdict = judge(kRule, "b_loss@T0,E1,T2=1,2,1; a_loss@T0,E1,T2=1,3,1");
  ASSERT_EQ(verdict.hits.at(0).violations.size(), 2u);
  EXPECT_EQ(verdict.hits[0].violations[0].tensor, "a_loss");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("'a_loss' is 3 on the validation data"));
}

TEST(Overfit, metrics_without_modes_are_paired_by_name) {
  const CaseOptions options{.collections = {{"losses", "-rmse"}}};
  expect_fires(kRule, "train-rmse@0,1,2=1,0.8,0.5; validation-rmse@0,1,2=1.05,0.85,0.6", 2,
               options);
  expect_silent(kRule, "train-rmse@0,1=1,0.8; eval-rmse@0,1=1.05,0.85", options);
  expect_fires(kRule, "train-rmse@4=1; test-rmse@4=2", 4, options);
  const Verdict verdict = judge(kRule, "train-rmse@4=1; valid-rmse@4=2", options);
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).tensor, "valid-rmse");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["train_tensor"], "train-rmse");
}

TEST(Overfit, rising_metrics_are_reversed) {
  const CaseOptions options{.parameters = {{"tensor_regex", "-auc"}}};
  expect_fires(kRule, "train-auc@0,1=0.9,0.99; validation-auc@0,1=0.85,0.8", 1, options);
  expect_silent(kRule, "train-auc@0=0.5; validation-auc@0=0.9", options);
}

TEST(Overfit, tells_when_there_is_nothing_to_compare) {
  EXPECT_THAT(judge(kRule, "loss@T0,T1=1,2").missing.value_or(""), HasSubstr("losses of EVAL"));
  EXPECT_THAT(judge(kRule, "x@T0=1").missing.value_or(""), HasSubstr("needs losses (collection"));
}

TEST(Overfit, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}),
              HasSubstr("patience of Overfit is '0'; it must be at least 1."));
  EXPECT_THAT(creation_error(kRule, {{"start_step", "-1"}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"ratio_threshold", "much"}}), HasSubstr("a number"));
  EXPECT_THAT(creation_error(kRule, {{"ratio", 1}}), HasSubstr("has no parameter 'ratio'"));
}

}  // namespace
}  // namespace smd::rules
