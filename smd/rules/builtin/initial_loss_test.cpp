#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "InitialLoss";
const CaseOptions kTen = {.parameters = {{"num_classes", 10}}};  // ln 10 is 2.303

TEST(InitialLoss, fires_when_the_first_loss_is_far_above_the_chance) {
  expect_fires(kRule, "loss@0,1=9.8,2.3", 0, kTen);
  expect_silent(kRule, "loss@0,1=9.6,12", kTen);
  const Verdict verdict = judge(kRule, "loss@0,1=9.8,12", kTen);
  EXPECT_THAT(verdict.steps(), ElementsAre(0));
  EXPECT_NEAR(verdict.hits[0].violations[0].context["chance"].get<double>(), 2.302585, 1e-6);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("begins at 9.8"));
}

TEST(InitialLoss, a_negative_first_loss_is_below_any_chance) {
  expect_fires(kRule, "loss@0=-0.1", 0, kTen);
  // A model that was trained before may begin low.
  expect_silent(kRule, "loss@0=0.05", kTen);
  expect_fires(kRule, "loss@0=0.05", 0,
               {.parameters = {{"num_classes", "10"}, {"tolerance_percent", 50}}});
}

TEST(InitialLoss, the_variance_of_the_targets_is_the_chance_of_a_regression) {
  expect_fires(kRule, "loss@0=900", 0, {.parameters = {{"target_variance", 1.0}}});
  expect_silent(kRule, "loss@0=1.4", {.parameters = {{"target_variance", 1.0}}});
}

TEST(InitialLoss, the_number_of_classes_follows_from_the_inputs_of_the_loss) {
  const std::string logits = "CrossEntropyLoss_input_0@0=[[0,0,0],[0,0,0]];";  // ln 3 is 1.1
  expect_fires(kRule, logits + "loss@0=5", 0);
  expect_silent(kRule, logits + "loss@0=4.8");
  expect_fires(kRule,
               "CrossEntropyLoss_input_0~shape@0=[8,3]; CrossEntropyLoss_input_0~max@0=0;"
               "loss@0=5",
               0);
  EXPECT_THAT(judge(kRule, "loss@0=9").missing.value_or(""), HasSubstr("num_classes"));
}

TEST(InitialLoss, only_the_beginning_of_the_training_is_judged) {
  expect_silent(kRule, "loss@0,500=2.3,50", kTen);
  expect_silent(kRule, "loss@500=50; loss@0=2", kTen);
  expect_silent(kRule, "loss@E0=50; loss@T1=2.3", kTen);
  EXPECT_EQ(judge(kRule, "loss@500=50", kTen).status, RuleStatus::no_issues_found);
}

TEST(InitialLoss, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"num_classes", 1}}), HasSubstr("at least 2"));
  EXPECT_THAT(creation_error(kRule, {{"target_variance", 0}}), HasSubstr("above 0"));
  EXPECT_THAT(creation_error(kRule, {{"num_classes", 3}, {"target_variance", 1}}),
              HasSubstr("has both"));
}

}  // namespace
}  // namespace smd::rules
