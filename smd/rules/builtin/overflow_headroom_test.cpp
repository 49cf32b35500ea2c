#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "OverflowHeadroom";

TEST(OverflowHeadroom, fires_when_the_magnitude_passes_a_tenth_of_the_range) {
  const std::string run =
      "act@0:float16=[100,-1]; act@1:float16=[1,-6000]; act@2:float16=[1,-8000];"
      "act@3:float16=[9000,1]; act@4:float16=[10,1]; act@5:float16=[9000,1]";
  expect_fires(kRule, run, 2);
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(2, 5));
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
  const Violation& hit = verdict.hits[0].violations.at(0);
  EXPECT_DOUBLE_EQ(hit.value, 8000 / 65504.0);
  EXPECT_EQ(hit.context["dtype"], "float16");
  EXPECT_FALSE(hit.context.contains("steps_to_overflow"));
}

TEST(OverflowHeadroom, estimates_the_steps_that_are_left) {
  // Doubles at every step; 8192 at step 13 and 65536 three steps later.
  std::string run;
  for (int i = 0; i < 14; ++i) {
    run += "act@" + std::to_string(i) + ":float16=[" + std::to_string(1 << i) + ",0];";
  }
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(13));
  EXPECT_NEAR(verdict.hits[0].violations[0].context["steps_to_overflow"].get<double>(), 3, 0.01);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("overflows in about 3 steps"));
}

TEST(OverflowHeadroom, wide_types_and_masks_are_silent) {
  expect_silent(kRule, "act@0:float32=[1e30,1]; act2@0=[1e300,1]");
  expect_silent(kRule, "act@0:float16=[1,2]; mask@0:float16=[-10000,0]");
  expect_silent(kRule, "scores@0:float16=[-65504,0]");
  expect_fires(kRule, "act@0:float32=[3e38,1]", 0);
}

TEST(OverflowHeadroom, what_is_scaled_on_purpose_is_information) {
  const Verdict verdict = judge(kRule, "gradient/w@0:float16=[30000,1]");
  EXPECT_EQ(verdict.finding->severity, Severity::info);
  EXPECT_EQ(judge(kRule, "act@0:float8_e4m3fn=[416,1]", {.packed = true}).finding->severity,
            Severity::info);
}

TEST(OverflowHeadroom, numbers_alone_need_the_type) {
  const std::string run = "act~abs_max@0=10; act~abs_max@1=20000";
  EXPECT_THAT(judge(kRule, run).missing.value_or(""), HasSubstr("needs the values"));
  expect_fires(kRule, run, 1, {.parameters = {{"dtype", "float16"}}});
  expect_silent(kRule, run, {.parameters = {{"dtype", "bfloat16"}}});
}

TEST(OverflowHeadroom, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"share", 1}}), HasSubstr("above 0 and below 1"));
  EXPECT_THAT(creation_error(kRule, {{"dtype", "flaot16"}}), HasSubstr("Did you mean 'float16'?"));
  EXPECT_THAT(creation_error(kRule, {{"trend_steps", 2}}), HasSubstr("at least 5"));
}

}  // namespace
}  // namespace smd::rules
