#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "IdenticalUnits";

TEST(IdenticalUnits, fires_when_units_stay_alike) {
  const std::string run =
      "weight/a@T0,T1,T2=[[1,2],[1,2]],[[1,3],[1,3]],[[2,3],[2,3]];"
      "weight/a@T3/10,T4/20=[[4,5],[4,5]],[[4,6],[4,6]]";
  expect_fires(kRule, run, 3);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(3));
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("All 2 units of 'weight/a'"));
  expect_fires(kRule, "weight/a@0,5,9=[[0,0],[0,0]],[[0,0],[0,0]],[[0,0],[0,0]]", 9);
}

TEST(IdenticalUnits, what_parts_or_has_no_units_is_silent) {
  // Zero at first, as adapters and the ends of residual branches are.
  expect_silent(kRule, "weight/a@0,5,9=[[0,0],[0,0]],[[0,0],[0,0]],[[0,0.1],[0,0]]");
  expect_silent(kRule, "weight/a@0,1,2=[[1,2],[1,2]],[[1,2],[1,2]],[[1,2],[1,2]]");
  expect_silent(kRule, "weight/norm@0,5,9=[1,1],[1,1],[1,1]");
  expect_silent(kRule, "weight/one@0,5,9=[[1,2]],[[1,2]],[[1,2]]");
  expect_silent(kRule, "weight/column@0,5,9=[[1],[1]],[[1],[1]],[[1],[1]]");
}

TEST(IdenticalUnits, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(judge(kRule, "weight/a~l2@0=1").missing.value_or(""), HasSubstr("values"));
}

}  // namespace
}  // namespace smd::rules
