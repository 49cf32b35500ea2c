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

constexpr std::string_view kRule = "GrowthDivergence";

std::string series(std::string_view name, int count, const std::function<double(int)>& value) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{0}@{1}=[{2},-{2}];", name, i, value(i));
  return out;
}

TEST(GrowthDivergence, fires_after_five_doublings) {
  const std::string run =
      series("weight/a", 12, [](int i) { return i < 4 ? 1 : std::exp2(i - 3); });
  expect_fires(kRule, run, 8);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(8));
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("from 1 to 32"));
  expect_fires(kRule, series("gradient/a", 12, [](int i) { return std::pow(3, i); }), 5);
  expect_silent(kRule, series("weight/a", 30, [](int i) { return 1e-3 * std::pow(1.9, i); }));
}

TEST(GrowthDivergence, fires_above_the_limits) {
  expect_fires(kRule, "weight/a@0=[1,1]; weight/a@1=[2e8,3e8]", 1);
  expect_fires(kRule, "gradient/a@0=[1,1]; gradient/a@1=[2e6,3e6]", 1);
  expect_silent(kRule, "weight/a@0=[1,1]; weight/a@1=[2e6,3e6]");
  expect_fires(kRule, "weight/a~abs_mean@3=2e8", 3);
}

TEST(GrowthDivergence, healthy_growth_is_silent) {
  // From zero with a steady update, warm-up, and spikes that go away.
  expect_silent(kRule, series("weight/gain", 60, [](int i) { return 0.001 * i; }));
  expect_silent(kRule, series("weight/a", 60, [](int i) { return 1e-6 * i * i; }));
  expect_silent(kRule, series("gradient/a", 60, [](int i) { return i % 5 == 4 ? 30 : 1; }));
  expect_silent(kRule, "weight/a@0=[1]; weight/a@1=[nan]; weight/a@2=[1]");
  // From a dip, such as an easy batch, back to where it was.
  expect_silent(kRule, series("gradient/a", 30, [](int i) {
                  return i < 12 ? 1 : std::min(1.0, 1e-3 * std::exp2(i - 12));
                }));
}

TEST(GrowthDivergence, gradients_are_not_blamed_for_a_weight) {
  const std::string run = "weight/a@0,1=[1,1],[1e30,1e30]; gradient/weight/a@0,1=[1,1],[1e30,1e30]";
  const Verdict verdict = judge(kRule, run);
  ASSERT_EQ(verdict.finding->tensors.size(), 1u);
  EXPECT_EQ(verdict.finding->tensors[0].tensor, "weight/a");
  EXPECT_EQ(verdict.finding->severity, Severity::error);
}

TEST(GrowthDivergence, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"factor", 1}}), HasSubstr("above 1"));
  EXPECT_THAT(creation_error(kRule, {{"checks", 1}}), HasSubstr("at least 2"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("weights"));
}

}  // namespace
}  // namespace smd::rules
