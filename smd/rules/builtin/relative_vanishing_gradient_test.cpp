#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "RelativeVanishingGradient";

// Three layers, saved in the order of the forward pass, which is not that of their names.
std::string run(int count, const std::function<double(int)>& first, double last = 1) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format(
        "weight/z@{0}=[[1]];weight/m@{0}=[[1]];weight/a@{0}=[[1]];"
        "gradient/weight/a@{0}=[[{2}]];gradient/weight/m@{0}=[[0]];"
        "gradient/weight/z@{0}=[[{1}]];",
        i, first(i), last);
  }
  return out;
}

TEST(RelativeVanishingGradient, fires_when_the_first_layer_gets_a_thousandth) {
  const std::string text = run(15, [](int) { return 5e-5; });
  expect_fires(kRule, text, 9);
  const Verdict verdict = judge(kRule, text);
  EXPECT_THAT(verdict.steps(), ElementsAre(9));
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
  EXPECT_EQ(verdict.hits[0].violations.at(0).tensor, "gradient/weight/z");
  EXPECT_EQ(verdict.hits[0].violations[0].context["last_layer"], "gradient/weight/a");
}

TEST(RelativeVanishingGradient, healthy_gradients_are_silent) {
  expect_silent(kRule, run(15, [](int) { return 0.01; }));
  // Everything small at the end of a training, and no gradient in the first steps behind a
  // residual gain of zero.
  expect_silent(kRule, run(
                           15, [](int) { return 5e-7; }, 1e-5));
  expect_silent(kRule, run(30, [](int i) { return i < 5 ? 0 : 0.1; }));
  // Small in relation alone.
  expect_silent(kRule, run(
                           15, [](int) { return 0.5; }, 1000));
}

TEST(RelativeVanishingGradient, growth_on_the_way_back_is_information) {
  const Verdict verdict = judge(kRule, run(15, [](int) { return 100; }));
  EXPECT_THAT(verdict.steps(), ElementsAre(9));
  EXPECT_EQ(verdict.finding->severity, Severity::info);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("it grows on its way back"));
}

TEST(RelativeVanishingGradient, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"ratio", 1}}), HasSubstr("above 0 and below 1"));
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(judge(kRule, "gradient/a@0=[1]").missing.value_or(""), HasSubstr("weights"));
}

}  // namespace
}  // namespace smd::rules
