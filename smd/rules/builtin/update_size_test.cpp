#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "UpdateSize";

std::string weights(int count, const std::function<double(int)>& w, int interval = 1) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("weight/a@{}=[{:.17g},{:.17g}];", i * interval, w(i), -w(i));
  }
  return out;
}

TEST(UpdateSize, fires_when_updates_are_above_the_band_for_five_checks) {
  // Turns its sign: the mean magnitude stays, the values do not.
  const auto flips = [](int i) { return i % 2 == 0 ? 1.0 : 0.8; };
  expect_fires(kRule, weights(10, flips), 5);
  const Verdict verdict = judge(kRule, weights(10, flips));
  EXPECT_EQ(verdict.hits.size(), 1u);
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
  EXPECT_NEAR(verdict.hits[0].violations[0].value, std::log10(0.2), 1e-9);
  EXPECT_EQ(verdict.hits[0].violations[0].context["from"], "values");
  expect_silent(kRule, weights(5, flips));
  expect_fires(kRule, weights(10, flips), 2, {.parameters = {{"patience", 2}}});
}

TEST(UpdateSize, several_steps_between_two_saves_are_shared_out) {
  const auto flips = [](int i) { return i % 2 == 0 ? 1.0 : 0.8; };
  expect_silent(kRule, weights(10, flips, 10));
  expect_fires(kRule,
               weights(
                   10, [](int i) { return std::pow(3.0, i); }, 10),
               50);
}

TEST(UpdateSize, saved_means_give_a_lower_bound) {
  std::string run;
  for (int i = 0; i < 8; ++i) {
    run += fmt::format("weight/a~abs_mean@{}={};", i, i % 2 == 0 ? 1.0 : 0.8);
  }
  expect_fires(kRule, run, 5);
  EXPECT_EQ(judge(kRule, run).hits.at(0).violations.at(0).context["from"],
            "abs_mean, a lower bound");
  // Means that hardly move tell nothing about small updates.
  std::string still;
  for (int i = 0; i < 40; ++i) still += fmt::format("weight/a~abs_mean@{}={};", i, 1 + i * 1e-9);
  expect_silent(kRule, still);
}

TEST(UpdateSize, values_between_which_there_are_only_numbers_are_compared_all_the_same) {
  // Means that stand still, and elements that change places.
  std::string run;
  for (int i = 0; i <= 40; ++i) {
    run += i % 2 == 0 ? fmt::format("weight/a@{}=[{},{}];", i, i % 4 + 1, 3 - i % 4)
                      : fmt::format("weight/a~abs_mean@{}=2;", i);
  }
  expect_fires(kRule, run, 10);
  EXPECT_NEAR(judge(kRule, run).hits.at(0).violations.at(0).value, std::log10(0.5), 1e-9);
}

TEST(UpdateSize, ordinary_updates_are_silent) {
  expect_silent(kRule, weights(100, [](int i) { return 1 + 0.001 * i; }));
  // Warm-up, and decay to zero: tiny at one end.
  expect_silent(kRule, weights(100, [](int i) { return 1 + 1e-6 * i * i * i; }));
  expect_silent(kRule, weights(100, [](int i) { return 2 - std::pow(0.9, i); }));
}

TEST(UpdateSize, frozen_weights_and_those_that_begin_at_zero_are_silent) {
  expect_silent(kRule, weights(40, [](int) { return 0.5; }));
  expect_silent(kRule, weights(40, [](int i) { return 0.001 * i; }));
  // Single numbers that pass through zero.
  std::string single;
  for (int i = 0; i < 60; ++i) {
    single += fmt::format("weight/gain@{}=[{:.17g}];", i, 0.1 * std::cos(i / 16.0));
  }
  expect_silent(kRule, single);
  std::string numbers;
  for (int i = 0; i < 60; ++i) {
    numbers += fmt::format(
        "weight/gain~abs_mean@{0}={1};weight/gain~min@{0}=-{1};"
        "weight/gain~max@{0}=-{1};",
        i, std::exp2(i));
  }
  expect_silent(kRule, numbers);
  // Around zero again, after its youth.
  expect_silent(kRule, weights(200, [](int i) { return 0.1 * std::sin(i / 16.0); }));
}

TEST(UpdateSize, tiny_updates_in_the_whole_run_are_told_at_the_end) {
  const std::string slow = weights(40, [](int i) { return 1 + 1e-5 * i; });
  expect_fires(kRule, slow, 39);
  EXPECT_EQ(judge(kRule, slow).finding->severity, Severity::info);
  const Verdict lost = judge(kRule, weights(40, [](int i) { return 1 + 1e-9 * i; }));
  EXPECT_EQ(lost.finding->severity, Severity::warning);
  EXPECT_THAT(lost.hits.at(0).message, HasSubstr("1 of 1 weights moved by at most 1e-09"));
}

TEST(UpdateSize, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"low", 0}}), HasSubstr("not below high"));
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("weights"));
}

}  // namespace
}  // namespace smd::rules
