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

constexpr std::string_view kRule = "SwappedClasses";

// One evaluation: 10 samples of each of three classes, and what they are taken for.
std::string evaluation(int step, int of_0, int of_1, int of_2) {
  std::string labels;
  std::string predictions;
  for (int c = 0; c < 3; ++c) {
    const int taken = c == 0 ? of_0 : c == 1 ? of_1 : of_2;
    for (int k = 0; k < 10; ++k) {
      labels += fmt::format("{},", c);
      predictions += fmt::format("{},", k == 0 ? c : taken);
    }
  }
  labels.back() = predictions.back() = ' ';
  return fmt::format("labels@E{0}:int64=[{1}]; predictions@E{0}:int64=[{2}]; loss@T{3}=1;", step,
                     labels, predictions, step + 1);
}

TEST(SwappedClasses, fires_when_two_classes_are_taken_for_each_other) {
  const std::string run = evaluation(0, 1, 0, 2) + evaluation(2, 1, 0, 2) + evaluation(4, 1, 0, 2) +
                          evaluation(6, 1, 0, 2);
  expect_fires(kRule, run, 4);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(4));
  EXPECT_EQ(judge(kRule, run).finding->tensors[0].tensor, "predictions");
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("90 % of class 0"));
}

TEST(SwappedClasses, a_model_that_has_not_learned_is_silent) {
  // All for one, a circle of three, right ones, and a swap that goes away.
  expect_silent(kRule, evaluation(0, 1, 1, 1) + evaluation(2, 1, 1, 1) + evaluation(4, 1, 1, 1));
  expect_silent(kRule, evaluation(0, 1, 2, 0) + evaluation(2, 1, 2, 0) + evaluation(4, 1, 2, 0));
  expect_silent(kRule, evaluation(0, 0, 1, 2) + evaluation(2, 0, 1, 2) + evaluation(4, 0, 1, 2));
  expect_silent(kRule, evaluation(0, 1, 0, 2) + evaluation(2, 1, 0, 2) + evaluation(4, 0, 1, 2));
}

TEST(SwappedClasses, tells_what_is_missing) {
  EXPECT_THAT(judge(kRule, "labels@T0:int64=[1]; predictions@T0:int64=[1]").missing.value_or(""),
              HasSubstr("evaluations"));
  EXPECT_THAT(creation_error(kRule, {{"share", 1}}), HasSubstr("share of SwappedClasses"));
}

}  // namespace
}  // namespace smd::rules
