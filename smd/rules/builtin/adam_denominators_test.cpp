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

constexpr std::string_view kRule = "AdamDenominators";

// Second moments whose corrected roots are `a`, `b` and 1e-3.
std::string moments(int count, double a, double b) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const double grown = 1 - std::pow(0.999, i + 1);
    out += fmt::format(
        "optimizer/exp_avg_sq/a@T{0}=[{1},{1}];optimizer/exp_avg_sq/b@T{0}=[{2},{2}];"
        "optimizer/exp_avg_sq/c@T{0}=[{3},{3}];",
        i, a * a * grown, b * b * grown, 1e-6 * grown);
  }
  return out;
}

TEST(AdamDenominators, fires_when_epsilon_is_not_small_beside_the_gradients) {
  const CaseOptions large = {.parameters = {{"epsilon", 0.1}}};
  expect_fires(kRule, moments(40, 0.01, 0.02), 19, large);
  EXPECT_THAT(judge(kRule, moments(40, 0.01, 0.02), large).steps(), ElementsAre(19));
  EXPECT_THAT(judge(kRule, moments(40, 0.01, 0.02), large).hits[0].message,
              HasSubstr("Epsilon, 0.1, is not small"));
  // As it was recorded.
  expect_fires(kRule, moments(40, 0.01, 0.02) + "scalar/adam_eps@T0=0.1", 19);
}

TEST(AdamDenominators, fires_for_noise_that_epsilon_does_not_hold_down) {
  const CaseOptions small = {.parameters = {{"epsilon", 1e-16}}};
  expect_fires(kRule, moments(40, 1e-10, 1e-3), 19, small);
  EXPECT_EQ(judge(kRule, moments(40, 1e-10, 1e-3), small).finding->tensors[0].tensor,
            "optimizer/exp_avg_sq/a");
}

TEST(AdamDenominators, usual_gradients_are_silent) {
  expect_silent(kRule, moments(40, 1e-3, 1e-2));
  // The usual epsilon holds noise down, and a constant parameter has no gradient at all.
  expect_silent(kRule, moments(40, 1e-10, 1e-3));
  expect_silent(kRule, moments(40, 0, 1e-3), {.parameters = {{"epsilon", 1e-16}}});
  expect_silent(kRule, moments(15, 0.01, 0.02), {.parameters = {{"epsilon", 0.1}}});
}

TEST(AdamDenominators, tells_what_is_missing) {
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("second moments of Adam"));
  EXPECT_THAT(creation_error(kRule, {{"epsilon", 0}}), HasSubstr("epsilon of AdamDenominators"));
}

}  // namespace
}  // namespace smd::rules
