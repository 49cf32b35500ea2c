#include "smd/cli/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/rules/diagnosis.h"
#include "tests/support/rule_case.h"

namespace smd::cli {
namespace {

using rules::RuleCase;

// The curve of the only finding of a rule.
std::optional<Curve> curve(const RuleCase& run, const std::string& rule) {
  const auto trial = run.trial();
  const auto diagnosis = rules::diagnose(trial, {.rules = {rule}});
  EXPECT_TRUE(diagnosis.ok());
  EXPECT_EQ(diagnosis->findings.size(), 1u);
  return diagnosis->findings.empty() ? std::nullopt : curve_of(*trial, diagnosis->findings[0]);
}

TEST(Curve, shows_the_statistic_with_threshold_and_first_hit) {
  const RuleCase run("gradient/a@T0=[1,-1]; gradient/a@E1=[9,9]; gradient/a@T2=[1e-9,0]");
  const auto found = curve(run, "VanishingGradient");
  ASSERT_TRUE(found.has_value());
  ASSERT_EQ(found->series.size(), 1u);
  EXPECT_EQ(found->series[0].name, "gradient/a (abs_mean)");
  // Steps of the mode of the hit only.
  EXPECT_THAT(found->series[0].points,
              testing::ElementsAre(std::pair(0.0, 1.0), std::pair(1.0, 5e-10)));
  EXPECT_EQ(found->options.threshold, 1e-7);
  EXPECT_EQ(found->options.mark, 1);
  EXPECT_EQ(found->options.x_label, "TRAIN step");
  EXPECT_TRUE(found->options.log);
}

TEST(Curve, saved_reductions_will_do) {
  const auto found =
      curve(RuleCase("gradient/a~abs_mean@0=1; gradient/a~abs_mean@7=0"), "VanishingGradient");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->series[0].points.size(), 2u);
  EXPECT_EQ(found->options.mark, 7);
}

TEST(Curve, other_metrics_show_the_value_without_a_threshold) {
  const auto loss = curve(RuleCase("loss@0,10,20=3,2,5"), "LossNotDecreasing");
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->series[0].name, "loss");
  EXPECT_FALSE(loss->options.threshold.has_value());
  const auto special = curve(RuleCase("x@0=[1,2]; x@1=[1,inf]"), "ExplodingTensor");
  ASSERT_TRUE(special.has_value());
  EXPECT_EQ(special->series[0].name, "x (abs_max)");
}

TEST(Curve, a_threshold_for_another_number_is_left_out) {
  const RuleCase run("x@0=[1,2]; x@1=[1,4]");
  const rules::RuleKind kind{.name = "Differs"};
  rules::Finding finding{.kind = &kind, .first_step = {.step = 1}};
  finding.first_hit.violations.push_back(
      {.tensor = "x", .metric = "max", .value = 4, .threshold = 3});
  EXPECT_EQ(curve_of(*run.trial(), finding)->options.threshold, 3);
  finding.first_hit.violations[0].value = 0.25;
  EXPECT_FALSE(curve_of(*run.trial(), finding)->options.threshold.has_value());
}

TEST(Curve, losses_are_those_of_train_if_it_has_some) {
  const auto loss = loss_curve(*RuleCase("loss@E0=9; loss@T1=3; my_loss@T1=4; x@T1=1").trial());
  ASSERT_TRUE(loss.has_value());
  ASSERT_EQ(loss->series.size(), 2u);
  EXPECT_EQ(loss->series[0].name, "loss");
  EXPECT_THAT(loss->series[0].points, testing::ElementsAre(std::pair(0.0, 3.0)));
  EXPECT_EQ(loss->options.title, "losses");
  EXPECT_FALSE(loss_curve(*RuleCase("x@0=1").trial()).has_value());
}

TEST(Curve, what_is_about_no_tensor_has_none) {
  const RuleCase run("x@0=1");
  rules::Finding finding;
  finding.first_hit.violations.push_back({.metric = "age"});
  EXPECT_FALSE(curve_of(*run.trial(), finding).has_value());
}

}  // namespace
}  // namespace smd::cli
