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

constexpr std::string_view kRule = "GeneralizationGap";

// Rounds of two training losses and one evaluation: steps 3i, 3i + 1 and 3i + 2.
std::string rounds(int count, const std::function<double(int)>& train,
                   const std::function<double(int)>& eval) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("loss@T{}={};loss@T{}={};loss@E{}={};", 3 * i, train(i), 3 * i + 1, train(i),
                       3 * i + 2, eval(i));
  }
  return out;
}

TEST(GeneralizationGap, fires_when_training_falls_and_evaluations_do_not) {
  const std::string run = rounds(
      10, [](int i) { return std::exp(-i); }, [](int) { return 1; });
  // Three evaluations of the past, then three that are apart.
  expect_fires(kRule, run, 18);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(18));
  expect_fires(kRule,
               rounds(
                   8, [](int i) { return std::exp(-i); }, [](int i) { return 0.5 + 0.1 * i; }),
               18);
  // At the end of training.
  expect_fires(kRule,
               rounds(
                   6, [](int i) { return std::exp(-i); }, [](int) { return 1; }),
               17);
}

TEST(GeneralizationGap, fires_for_metrics_of_boosted_trees) {
  std::string run;
  for (int i = 0; i < 9; ++i) {
    run += fmt::format("train-rmse@{0}={1};validation-rmse@{0}=1;", i, std::exp(-i));
  }
  expect_fires(kRule, run, 5, {.collections = {{"losses", "rmse"}}});
}

TEST(GeneralizationGap, healthy_gaps_are_silent) {
  // Wide and closing, narrow and steady, a single bad evaluation, and losses that are flat.
  expect_silent(kRule,
                rounds(
                    9, [](int i) { return std::exp(-i); }, [](int i) { return 3 * std::exp(-i); }));
  expect_silent(kRule, rounds(
                           9, [](int i) { return 1 - 0.05 * i; }, [](int) { return 1.05; }));
  expect_silent(kRule, rounds(
                           9, [](int) { return 0.2; }, [](int i) { return i == 5 ? 3 : 0.25; }));
  expect_silent(kRule, rounds(
                           9, [](int) { return 0.2; }, [](int) { return 0.9; }));
}

TEST(GeneralizationGap, tells_what_is_missing) {
  EXPECT_THAT(judge(kRule, "loss@T0,T1=1,1").missing.value_or(""), HasSubstr("losses of EVAL"));
  EXPECT_THAT(creation_error(kRule, {{"ratio", 1}}), HasSubstr("above 1"));
}

}  // namespace
}  // namespace smd::rules
