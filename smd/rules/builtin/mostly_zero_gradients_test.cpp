#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "MostlyZeroGradients";

std::string repeated(std::string_view value, int from, int to, std::string_view name = "a") {
  std::string out;
  for (int i = from; i < to; ++i) out += fmt::format("gradient/{}@{}={};", name, i, value);
  return out;
}

TEST(MostlyZeroGradients, fires_when_units_are_dead_for_ten_checks) {
  const std::string run =
      repeated("[1,1,1,1]", 0, 5) + repeated("[0,0,0,1]", 5, 30) + repeated("[0,0]", 0, 30, "b");
  expect_fires(kRule, run, 14);
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(14));
  EXPECT_EQ(verdict.hits[0].violations.at(0).tensor, "gradient/b");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("83 % of all elements"));
}

TEST(MostlyZeroGradients, healthy_gradients_are_silent) {
  expect_silent(kRule, repeated("[0,0,1,1]", 0, 30));
  // Embeddings of which a batch uses few rows, and the first steps behind a gain of zero.
  expect_silent(
      kRule, repeated("[0,0,0,0,0,0,0,0,1]", 0, 30, "embedding.weight") + repeated("[1,1]", 0, 30));
  expect_silent(kRule, repeated("[0,0,0,0]", 0, 8) + repeated("[1,1,1,1]", 8, 30));
  expect_fires(kRule, repeated("[0,0,0,0,1]", 0, 30, "embedding.weight"), 9,
               {.parameters = {{"exclude_regex", "nothing"}}});
}

TEST(MostlyZeroGradients, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"share", 0}}), HasSubstr("share of MostlyZeroGradients"));
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(judge(kRule, "gradient/a~l2@0=1").missing.value_or(""), HasSubstr("values"));
}

}  // namespace
}  // namespace smd::rules
