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

constexpr std::string_view kRule = "OutputRange";

TEST(OutputRange, a_softmax_that_is_applied_twice_is_found) {
  const std::string run =
      "CrossEntropyLoss_input_0@T0,T1,T2=[[0.2,0.8],[0.5,0.5]],[[0.1,0.9],[1,0]],[[0,1],[0.3,0.7]]";
  expect_fires(kRule, run, 1);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(1));
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("softmax is applied twice"));
  // Classes are the second of three axes.
  expect_fires(kRule, "cross_entropy_input_0@0,1=[[[0.2,1],[0.8,0]]],[[[0.5,0.25],[0.5,0.75]]]", 1);
}

TEST(OutputRange, a_log_softmax_that_is_missing_is_found) {
  expect_fires(kRule, "NLLLoss_input_0@0,1=[[0.4,-3]],[[0.2,-1]]", 1);
  expect_fires(kRule, "NLLLoss_input_0~max@0,1=2,3", 1);
}

TEST(OutputRange, a_squared_distance_to_classes_is_found) {
  expect_fires(kRule,
               "MSELoss_input_0@0,1=[[0.4,-3],[1,2]],[[0.2,-1],[0,1]];"
               "labels@0,1:int64=[1,0],[1,1]",
               1);
  // Targets of a regression, and no labels at all.
  expect_silent(kRule,
                "MSELoss_input_0@0,1=[[0.4,-3],[1,2]],[[0.2,-1],[0,1]];"
                "labels@0,1=[[1.5,0],[0,1]],[[1,1.5],[0,1]]");
  expect_silent(kRule, "MSELoss_input_0@0,1=[[0.4,-3],[1,2]],[[0.2,-1],[0,1]]");
}

TEST(OutputRange, what_the_losses_expect_is_silent) {
  expect_silent(kRule, "CrossEntropyLoss_input_0@0,1,2=[[2,-1]],[[0.3,0.8]],[[0.5,0.6]]");
  expect_silent(kRule, "NLLLoss_input_0@0,1=[[-0.5,-0.9]],[[-0.1,-2]]");
  // By chance, once.
  expect_silent(kRule, "CrossEntropyLoss_input_0@0,1,2=[[0.3,0.7]],[[0.3,0.8]],[[0.4,0.6]]");
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace smd::rules
