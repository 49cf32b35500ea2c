#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "NegativeLoss";

TEST(NegativeLoss, one_that_cannot_be_negative_is_a_warning) {
  const std::string run = "NLLLoss_loss@0,1,2=0.1,-0.2,-0.3";
  expect_fires(kRule, run, 1);
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(1));
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("which such a loss can never be"));
}

TEST(NegativeLoss, others_are_information) {
  EXPECT_EQ(judge(kRule, "loss@0,1=0.1,-5").finding->severity, Severity::info);
  EXPECT_EQ(judge(kRule, "loss@0,1=0.1,-5", {.parameters = {{"non_negative_regex", "^loss$"}}})
                .finding->severity,
            Severity::warning);
}

TEST(NegativeLoss, zero_nan_and_positive_losses_are_silent) {
  expect_silent(kRule, "MSELoss_loss@0,1,2=1,0,nan; x@0=-1");
}

TEST(NegativeLoss, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"non_negative_regex", "("}}), HasSubstr("("));
  EXPECT_THAT(judge(kRule, "x@0=-1").missing.value_or(""), HasSubstr("losses"));
}

}  // namespace
}  // namespace smd::rules
