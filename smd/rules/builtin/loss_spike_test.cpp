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

constexpr std::string_view kRule = "LossSpike";

// A loss at the steps 0 … count - 1.
std::string losses(int count, const std::function<double(int)>& loss) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("loss@{}={};", i, loss(i));
  return out;
}
// Falls towards 1 with noise.
double falling(int i) { return 1 + 2 * std::exp(-i / 30.0) + 0.1 * std::sin(i * 1.7); }

TEST(LossSpike, a_spike_that_lasts_is_a_warning) {
  const std::string run = losses(120, [](int i) { return i >= 80 ? 5 : falling(i); });
  expect_fires(kRule, run, 84);
  const Verdict verdict = judge(kRule, run);
  ASSERT_EQ(verdict.hits.size(), 2u);
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
  EXPECT_EQ(verdict.hits[0].violations[0].context["began_at"], 80);
  EXPECT_EQ(verdict.hits[1].violations[0].context["recovery"], "not recovered");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("rose to 5 at step 80"));
}

TEST(LossSpike, a_benign_spike_of_one_step_is_information) {
  const std::string run = losses(120, [](int i) { return i == 80 ? 20 : falling(i); });
  expect_fires(kRule, run, 80);
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(80));
  EXPECT_EQ(verdict.finding->severity, Severity::info);
  EXPECT_EQ(verdict.hits[0].violations[0].context["recovery"], "fast recovery");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("came back after 1 value."));
}

TEST(LossSpike, a_slow_recovery_is_told) {
  const std::string run = losses(120, [](int i) { return i >= 80 && i < 90 ? 5 : falling(i); });
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(84, 90));
  EXPECT_EQ(verdict.hits[1].severity, Severity::info);
  EXPECT_EQ(verdict.hits[1].violations[0].context["recovery"], "slow recovery");
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
}

TEST(LossSpike, a_loss_that_explodes_from_the_start_is_found) {
  expect_fires(kRule, losses(10, [](int i) { return i < 3 ? 2 : std::pow(10, i); }), 7);
}

TEST(LossSpike, healthy_losses_are_silent) {
  expect_silent(kRule, losses(300, falling));
  // A plateau of a model that has converged, and small noisy batches with a heavy tail.
  expect_silent(kRule, losses(300, [](int) { return 0.25; }));
  expect_silent(kRule, losses(300, [](int i) { return std::exp(0.5 * std::sin(i * 12.9898)); }));
  // Warm-up: flat first, then a steep fall.
  expect_silent(kRule,
                losses(300, [](int i) { return i < 50 ? 7 : 7 * std::exp(-(i - 50) / 20.); }));
}

TEST(LossSpike, losses_of_evaluation_are_not_judged) {
  std::string run;
  for (int i = 0; i < 60; ++i) {
    run += fmt::format("loss@T{}={};loss@E{}={};", 2 * i, falling(i), 2 * i + 1, i < 40 ? 1 : 90);
  }
  expect_silent(kRule, run);
}

TEST(LossSpike, a_loss_that_becomes_nan_is_not_a_spike_by_itself) {
  expect_silent(kRule, losses(80, [](int i) { return i > 60 ? std::nan("") : falling(i); }));
}

TEST(LossSpike, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"window", 5}}), HasSubstr("it must be at least 20."));
  EXPECT_THAT(creation_error(kRule, {{"sigmas", 0}}), HasSubstr("it must be above 0"));
  EXPECT_THAT(creation_error(kRule, {{"patience", "1"}}), HasSubstr("it must be at least 2."));
  EXPECT_THAT(creation_error(kRule, {{"factor", "x"}}), HasSubstr("must be a number"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("losses"));
}

}  // namespace
}  // namespace smd::rules
