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

constexpr std::string_view kRule = "LearningRate";

std::string rates(int count, const std::function<double(int)>& rate,
                  std::string_view name = "scalar/lr") {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}@{}={};", name, i, rate(i));
  return out;
}
double cosine(int i) { return 0.05e-2 * (1 + std::cos(i * 3.14159265358979 / 200)); }

TEST(LearningRate, one_that_is_too_high_is_a_warning) {
  expect_fires(kRule, rates(5, [](int i) { return i < 3 ? 0.5 : 1.5; }), 3);
  expect_silent(kRule, rates(5, [](int) { return 0.05; }));
  const CaseOptions adam = {.parameters = {{"optimizer", "adam"}}};
  expect_fires(kRule, rates(5, [](int) { return 0.05; }), 0, adam);
  EXPECT_EQ(judge(kRule, rates(5, [](int) { return 0.05; }), adam).hits.size(), 1u);
  expect_silent(kRule, rates(5, [](int) { return 0.05; }),
                {.parameters = {{"optimizer", "adam"}, {"max_lr", 0.1}}});
}

TEST(LearningRate, zero_or_tiny_all_the_time_is_told_at_the_end) {
  expect_fires(kRule, rates(30, [](int) { return 0.0; }), 29);
  expect_fires(kRule, rates(30, [](int) { return 1e-9; }), 29);
  EXPECT_THAT(judge(kRule, rates(30, [](int) { return 0.0; })).hits.at(0).message,
              HasSubstr("was 0 in all 30 saved steps"));
  expect_silent(kRule, rates(10, [](int) { return 0.0; }));
}

TEST(LearningRate, negative_rates_and_nan_are_told_once) {
  EXPECT_THAT(judge(kRule, rates(9, [](int i) { return i < 4 ? 0.1 : -0.1; })).steps(),
              ElementsAre(4));
  expect_fires(kRule, rates(9, [](int i) { return i < 4 ? 0.1 : std::nan(""); }), 4);
}

TEST(LearningRate, jumps_are_told) {
  const Verdict beyond = judge(kRule, rates(30, [](int i) { return i < 15 ? 1e-4 : 1e-2; }));
  EXPECT_THAT(beyond.steps(), ElementsAre(15));
  EXPECT_EQ(beyond.finding->severity, Severity::warning);
  // A warm restart comes back to where it was.
  const Verdict restart = judge(kRule, rates(300, [](int i) { return cosine(i % 200); }));
  EXPECT_THAT(restart.steps(), ElementsAre(200));
  EXPECT_EQ(restart.finding->severity, Severity::info);
  const Verdict fall = judge(kRule, rates(30, [](int i) { return i < 15 ? 1e-2 : 1e-4; }));
  EXPECT_EQ(fall.finding->severity, Severity::info);
}

TEST(LearningRate, usual_schedules_are_silent) {
  expect_silent(kRule, rates(201, cosine));
  expect_silent(kRule, rates(200, [](int i) { return 1e-3 * std::min(1.0, i / 50.0); }));
  expect_silent(kRule, rates(200, [](int i) { return 1e-7 + 1e-6 * i; }));
  expect_silent(kRule, rates(90, [](int i) { return 0.1 * std::pow(0.1, i / 30); }));
}

TEST(LearningRate, a_schedule_that_does_not_move_is_told_if_there_should_be_one) {
  const auto constant = [](int) { return 1e-3; };
  expect_silent(kRule, rates(30, constant));
  expect_fires(kRule, rates(30, constant), 29, {.parameters = {{"schedule", true}}});
  expect_silent(kRule, rates(201, cosine), {.parameters = {{"schedule", true}}});
}

TEST(LearningRate, names_and_groups_are_found) {
  for (const char* name : {"lr", "train/learning_rate", "scalar/lr_0", "optim.lr/group1", "LR"}) {
    expect_fires(kRule,
                 rates(
                     3, [](int) { return 9; }, name),
                 0);
  }
  for (const char* name : {"slr", "lr_scheduler_state_dict_x", "color"}) {
    EXPECT_TRUE(judge(kRule, rates(
                                 3, [](int) { return 9; }, name))
                    .missing.has_value())
        << name;
  }
  expect_fires(kRule, "eta@0=9", 0, {.parameters = {{"tensor_regex", "eta"}}});
}

TEST(LearningRate, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"min_lr", 5}}), HasSubstr("above max_lr"));
  EXPECT_THAT(creation_error(kRule, {{"optimizer", "adamm"}}), HasSubstr("adam"));
  EXPECT_THAT(creation_error(kRule, {{"jump", 1}}), HasSubstr("above 1"));
}

}  // namespace
}  // namespace smd::rules
