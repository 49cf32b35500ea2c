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

constexpr std::string_view kRule = "GradientSpike";

double ordinary(int i) { return 1 + 0.2 * std::sin(i * 1.7); }

// Two gradients; `b` is that of the second one.
std::string run(int count, const std::function<double(int)>& b,
                const std::function<double(int)>& loss = {}) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("gradient/a@{0}=[{1},{1}];gradient/b~l2@{0}={2};", i, ordinary(i), b(i));
    if (loss) out += fmt::format("loss@{}={};", i, loss(i));
  }
  return out;
}

TEST(GradientSpike, a_spike_of_one_step_is_information_and_names_the_layer) {
  const std::string text = run(60, [](int i) { return i == 40 ? 50 : ordinary(i); });
  expect_fires(kRule, text, 40);
  const Verdict verdict = judge(kRule, text);
  EXPECT_THAT(verdict.steps(), ElementsAre(40));
  EXPECT_EQ(verdict.finding->severity, Severity::info);
  const Violation& first = verdict.hits[0].violations.at(0);
  EXPECT_EQ(first.tensor, "gradient/b");
  EXPECT_GT(first.context["share"].get<double>(), 0.9);
  EXPECT_GT(first.context["growth"].get<double>(), 30);
  EXPECT_NEAR(first.value, std::hypot(50, std::sqrt(2) * ordinary(40)), 1e-9);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("100 % of its square from 'gradient/b'"));
}

TEST(GradientSpike, one_that_lasts_is_information_without_the_loss) {
  const std::string text = run(60, [](int i) { return i >= 40 ? 50 : ordinary(i); });
  expect_fires(kRule, text, 44);
  EXPECT_EQ(judge(kRule, text).finding->severity, Severity::info);
}

TEST(GradientSpike, one_that_the_loss_follows_is_a_warning) {
  const auto gradient = [](int i) { return i == 40 ? 50 : ordinary(i); };
  const Verdict led = judge(kRule, run(60, gradient, [](int i) { return i > 40 ? 9 : 1; }));
  EXPECT_EQ(led.finding->severity, Severity::warning);
  EXPECT_THAT(led.finding->first_hit.message, HasSubstr("'loss' followed 1 step later"));
  // A loss that comes back at once has taken no harm.
  const Verdict benign = judge(kRule, run(60, gradient, [](int i) { return i == 41 ? 9 : 1; }));
  EXPECT_EQ(benign.finding->severity, Severity::info);
  // The same batch made both: a poisoned one, for instance.
  const Verdict same = judge(kRule, run(60, gradient, [](int i) { return i == 40 ? 9 : 1; }));
  EXPECT_EQ(same.finding->severity, Severity::info);
}

TEST(GradientSpike, healthy_gradients_are_silent) {
  expect_silent(kRule, run(200, ordinary));
  // Decay to zero, warm-up, and batches with a heavy tail.
  expect_silent(kRule, run(200, [](int i) { return 1 + std::cos(i * 3.14159 / 200); }));
  expect_silent(kRule, run(200, [](int i) { return 0.5 + i / 100.0; }));
  expect_silent(kRule, run(200, [](int i) { return std::exp(0.5 * std::sin(i * 12.9898)); }));
}

TEST(GradientSpike, steps_that_save_other_gradients_are_not_compared) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("gradient/a@{}=[{}];", i, ordinary(i));
    if (i % 10 == 0) text += fmt::format("gradient/big@{}=[{}];", i, 1000 * ordinary(i));
  }
  expect_silent(kRule, text);
}

TEST(GradientSpike, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"lead_steps", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"window", 19}}), HasSubstr("at least 20"));
  EXPECT_THAT(judge(kRule, "loss@0=1").missing.value_or(""), HasSubstr("gradients"));
}

}  // namespace
}  // namespace smd::rules
