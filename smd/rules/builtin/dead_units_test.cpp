#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "DeadUnits";
const CaseOptions kFew = {.parameters = {{"samples", 4}}};

TEST(DeadUnits, fires_when_most_units_are_zero_for_all_samples) {
  // Two batches of two samples each; the third unit is alive.
  const std::string run =
      "a.relu_output_0@T0,T1,T2,T3=[[0,0,1],[0,0,0]],[[0,0,0],[0,0,2]],[[0,0,1],[0,0,1]],"
      "[[0,0,1],[0,0,1]]";
  expect_fires(kRule, run, 1, kFew);
  EXPECT_THAT(judge(kRule, run, kFew).steps(), ElementsAre(1));
  EXPECT_THAT(judge(kRule, run, kFew).hits[0].message,
              HasSubstr("2 of the 3 units of 'a.relu_output_0'"));
  // Channels of images are units, features of sequences, too.
  expect_fires(kRule, "ReLU_output_0@0=[[[[0,0],[0,0]],[[0,0],[0,0]],[[0,1],[0,0]]]]", 0, kFew);
  expect_fires(kRule, "ReLU_output_0@0=[[[0,0,1],[0,0,1],[0,0,1],[0,0,1]]]", 0, kFew);
}

TEST(DeadUnits, units_that_are_active_now_and_then_are_silent) {
  // In each batch alone most units are zero.
  expect_silent(kRule, "a.relu_output_0@T0,T1=[[0,0,1],[0,0,1]],[[1,1,0],[1,0,0]]", kFew);
  // Most places of an image, and not its channels.
  expect_silent(kRule, "a.relu_output_0@0=[[[[0,0],[0,1]],[[0,1],[0,0]]]]", kFew);
  expect_silent(kRule, "a.relu_output_0@0=[[0,0,1],[0,0,1]]", kFew);
  // Evaluations do not train anything.
  expect_silent(
      kRule, "a.relu_output_0@E0,E1=[[0,0],[0,0]],[[0,0],[0,0]]; a.relu_output_0@T2=[[1,1]]", kFew);
}

TEST(DeadUnits, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"samples", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("outputs of ReLUs"));
}

}  // namespace
}  // namespace smd::rules
