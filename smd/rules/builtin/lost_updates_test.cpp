#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "LostUpdates";

TEST(LostUpdates, fires_when_narrow_weights_stand_still_under_gradients) {
  const std::string run =
      "weight/a@T0,T1/10,T2/20:bfloat16=[1,2,4,8],[1,2,4,8],[1,2,4,9];"
      "gradient/weight/a@T0,T1/10,T2/20=[1,1,1,1],[1,1,1,1],[1,1,1,1]";
  expect_fires(kRule, run, 2);
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("75 % of 'weight/a'"));
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("bfloat16 swallows the updates"));
  expect_fires(kRule,
               "weight/a@0,30:float16=[1,2],[1,2]; gradient/weight/a@0,30=[0.1,0.1],[0.1,0.1]", 30);
}

TEST(LostUpdates, weights_that_move_or_have_no_gradient_are_silent) {
  // A copy in float32 carries updates over; half of the elements have moved.
  expect_silent(kRule,
                "weight/a@0,10,30:bfloat16=[1,2],[1,2],[1,4];"
                "gradient/weight/a@0,10,30=[1,1],[1,1],[1,1]");
  // Rows of an embedding that no batch has used.
  expect_silent(kRule,
                "weight/a@0,30:bfloat16=[1,2,4],[1,2,8]; gradient/weight/a@0,30=[0,0,1],[0,0,1]");
  // Wide types lose nothing of interest, zeros have no smallest step, and there must be time.
  expect_silent(kRule, "weight/a@0,30:float32=[1,2],[1,2]; gradient/weight/a@0,30=[1,1],[1,1]");
  expect_silent(kRule, "weight/a@0,30:float16=[0,0],[0,0]; gradient/weight/a@0,30=[1,1],[1,1]");
  expect_silent(kRule, "weight/a@0,19:float16=[1,2],[1,2]; gradient/weight/a@0,19=[1,1],[1,1]");
}

TEST(LostUpdates, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"share", 1}}), HasSubstr("share of LostUpdates"));
  EXPECT_THAT(judge(kRule, "weight/a@0=[1]").missing.value_or(""), HasSubstr("gradients"));
}

}  // namespace
}  // namespace smd::rules
