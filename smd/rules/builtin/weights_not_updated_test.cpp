#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "WeightsNotUpdated";

// One weight and its gradient at the steps 0 … count - 1.
std::string weight(
    std::string_view name, int count, const std::function<double(int)>& value,
    const std::function<double(int)>& gradient = [](int) { return 0.5; }) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("weight/{0}@{1}=[{2:.17g},1];gradient/weight/{0}@{1}=[{3:.17g},0];", name, i,
                       value(i), gradient(i));
  }
  return out;
}
double moving(int i) { return 1 + 0.01 * i; }
double still(int) { return 1; }

TEST(WeightsNotUpdated, fires_when_one_weight_stays_while_others_change) {
  const std::string run = weight("a", 20, moving) + weight("b", 20, still);
  expect_fires(kRule, run, 5);
  const Verdict verdict = judge(kRule, run);
  ASSERT_EQ(verdict.hits.size(), 1u);
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
  EXPECT_EQ(verdict.hits[0].violations.at(0).tensor, "weight/b");
  EXPECT_EQ(verdict.hits[0].violations[0].context["compared"], "values");
  expect_fires(kRule, run, 2, {.parameters = {{"patience", 2}}});
}

TEST(WeightsNotUpdated, fires_when_no_weight_changes) {
  const std::string run = weight("a", 60, still) + weight("b", 60, still);
  expect_fires(kRule, run, 50);
  EXPECT_EQ(judge(kRule, run).finding->severity, Severity::error);
  expect_fires(kRule, run, 10, {.parameters = {{"all_patience", 10}}});
}

TEST(WeightsNotUpdated, sums_tell_it_too_where_values_were_not_saved) {
  std::string run = weight("a", 12, moving);
  for (int i = 0; i < 12; ++i) {
    run += fmt::format("weight/b~l2@{0}=3;gradient/weight/b~abs_max@{0}=1;", i);
  }
  expect_fires(kRule, run, 5);
  // An extreme element may stay while the others move.
  std::string extrema = weight("a", 12, moving);
  for (int i = 0; i < 12; ++i) {
    extrema += fmt::format("weight/b~max@{0}=3;gradient/weight/b~abs_max@{0}=1;", i);
  }
  expect_silent(kRule, extrema);
}

TEST(WeightsNotUpdated, a_zero_learning_rate_and_zero_gradients_explain_it) {
  std::string run = weight("a", 20, still) + weight("b", 20, moving);
  for (int i = 0; i < 20; ++i) run += fmt::format("scalar/lr@{}=0;", i);
  expect_silent(kRule, run);
  expect_silent(kRule, weight("a", 20, moving) + weight("b", 20, still, [](int) { return 0; }));
}

TEST(WeightsNotUpdated, healthy_runs_are_silent) {
  // Accumulation over 8 steps.
  expect_silent(kRule, weight("a", 100, [](int i) { return 1.0 + i / 8; }));
  // Decay to zero: the last updates are lost in the precision of the weight.
  const auto decayed = [](int i) { return i < 90 ? 1 + 0.01 * i : 1.9; };
  expect_silent(kRule, weight("a", 100, moving) + weight("b", 100, decayed));
  // A model that has converged.
  const auto gone = [](int i) { return i < 20 ? 1 : 1e-9; };
  expect_silent(kRule, weight(
                           "a", 60, [](int i) { return 1 + 0.01 * std::min(i, 20); }, gone));
}

TEST(WeightsNotUpdated, frozen_layers_without_gradients_are_information) {
  std::string run = weight("a", 30, moving);
  for (int i = 0; i < 30; ++i) run += fmt::format("weight/frozen@{}=[1,2];", i);
  const Verdict verdict = judge(kRule, run);
  ASSERT_EQ(verdict.hits.size(), 1u);
  EXPECT_EQ(verdict.finding->severity, Severity::info);
  EXPECT_EQ(verdict.hits[0].violations.at(0).tensor, "weight/frozen");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("never had a gradient"));
}

TEST(WeightsNotUpdated, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"all_patience", "x"}}), HasSubstr("a whole number"));
  EXPECT_THAT(judge(kRule, "weight/a@0=[1]").missing.value_or(""), HasSubstr("gradients"));
}

}  // namespace
}  // namespace smd::rules
