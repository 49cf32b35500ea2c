#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "Overtraining";
const CaseOptions kShort{.parameters = {{"patience_train", 2}, {"patience_validation", "1"}}};

TEST(Overtraining, fires_when_neither_loss_improves) {
  expect_fires(kRule, "loss@T0,E1,T2,E3,T4,E5,T6=1.0,1.0,0.5,0.5,0.499,0.6,0.495", 6, kShort);
}

TEST(Overtraining, is_silent_while_training_improves) {
  expect_silent(kRule, "loss@T0,E1,T2,E3,T4,E5,T6=1.0,1.0,0.5,0.5,0.499,0.6,0.4", kShort);
}

TEST(Overtraining, both_patiences_must_be_used_up) {
  const std::string run = "loss@T0,E1,T2,T3,T4,E5,E6,E7=1,1,1,1,1,0.5,0.5,0.5";
  expect_fires(kRule, run, 7, {.parameters = {{"patience_train", 3}, {"patience_validation", 2}}});
  expect_silent(kRule, run, {.parameters = {{"patience_train", 3}, {"patience_validation", 3}}});
  expect_silent(kRule, run, {.parameters = {{"patience_train", 4}, {"patience_validation", 2}}});
}

TEST(Overtraining, without_validation_the_training_loss_decides) {
  expect_fires(kRule, "loss@T0,T1,T2,T3,T4,T5=1,1,1,1,1,1", 5);
  expect_silent(kRule, "loss@T0,T1,T2,T3,T4=1,1,1,1,1");
}

TEST(Overtraining, a_job_without_modes_trains) {
  expect_fires(kRule, "loss@0,1,2=1,1,1", 2, kShort);
}

TEST(Overtraining, tells_bests_and_counters) {
  const Verdict verdict =
      judge(kRule, "loss@T0,E1,T2,E3,T4,E5,T6=1.0,1.0,0.5,0.5,0.499,0.6,0.495", kShort);
  ASSERT_THAT(verdict.steps(), ElementsAre(6));
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.value, 2);
  EXPECT_EQ(hit.op, Op::equal);
  EXPECT_EQ(hit.threshold, 2);
  EXPECT_EQ(hit.context["train_best"], 0.5);
  EXPECT_EQ(hit.context["train_best_step"], 2);
  EXPECT_EQ(hit.context["validation_best"], 0.5);
  EXPECT_EQ(hit.context["validation_best_step"], 3);
  EXPECT_EQ(hit.context["validation_counter"], 1);
  EXPECT_EQ(hit.context["validation_patience"], 1);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("best value is 0.5 at step 2"));
}

TEST(Overtraining, an_improvement_must_be_larger_than_delta) {
  const std::string run = "loss@T0,T1,T2=1,0.75,0.5";
  expect_fires(kRule, run, 2, {.parameters = {{"patience_train", 2}, {"delta", 0.5}}});
  expect_silent(kRule, run, {.parameters = {{"patience_train", 2}, {"delta", 0.49}}});
}

TEST(Overtraining, small_losses_can_improve_by_a_part_of_the_best) {
  const std::string run = "loss@T0,T1,T2=1e-4,9e-5,8e-5";
  expect_fires(kRule, run, 2, {.parameters = {{"patience_train", 2}}});
  expect_silent(kRule, run, {.parameters = {{"patience_train", 2}, {"delta_relative", "0.05"}}});
  EXPECT_THAT(creation_error(kRule, {{"delta_relative", 0.1}, {"delta", 0.1}}),
              HasSubstr("give one of them"));
}

TEST(Overtraining, numbers_that_are_not_finite_are_no_improvement) {
  expect_fires(kRule, "loss@T0,T1,T2=nan,inf,nan", 1, kShort);
  expect_fires(kRule, "loss@T0,T1,T2=1,nan,-inf", 2, kShort);
  expect_silent(kRule, "loss@T0,T1,T2,T3=nan,1,nan,0.5", kShort);
}

TEST(Overtraining, metrics_without_modes_are_paired_by_name) {
  const CaseOptions options{.parameters = kShort.parameters, .collections = {{"losses", "-"}}};
  expect_fires(kRule, "train-rmse@0,1,2=1,1,1; validation-rmse@0,1,2=1,1,1", 2, options);
  expect_silent(kRule, "train-rmse@0,1,2=1,1,1; validation-rmse@0,1,2=1,0.9,0.8", options);
  expect_silent(kRule, "train-auc@0,1,2=0.6,0.7,0.8; validation-auc@0,1,2=0.6,0.7,0.8", options);
  expect_fires(kRule, "train-auc@0,1,2=0.8,0.7,0.6; validation-auc@0,1,2=0.8,0.7,0.6", 2, options);
  const Verdict verdict =
      judge(kRule, "train-auc@0,1,2=0.8,0.7,0.6; validation-auc@0,1,2=0.8,0.7,0.6", options);
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["train_best"], 0.8);
}

TEST(Overtraining, tells_when_nothing_was_trained) {
  EXPECT_THAT(judge(kRule, "loss@E0,E1=1,1").missing.value_or(""), HasSubstr("of the training"));
  EXPECT_THAT(judge(kRule, "x@T0=1").missing.value_or(""), HasSubstr("needs losses"));
}

TEST(Overtraining, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"patience_train", "0"}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"patience_validation", "x"}}), HasSubstr("a whole number"));
  EXPECT_THAT(creation_error(kRule, {{"delta", -1}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"delta_relative", 1}}), HasSubstr("below 1"));
}

}  // namespace
}  // namespace smd::rules
