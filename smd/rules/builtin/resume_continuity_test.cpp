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

constexpr std::string_view kRule = "ResumeContinuity";

const CaseOptions kStates = {.collections = {{"optimizer_variables", "^optimizer/"}}};

std::string numbers(std::string_view name, int count, const std::function<double(int)>& value) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}@T{}={};", name, i, value(i));
  return out;
}
std::string states(int count, const std::function<double(int)>& scale) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("optimizer/v/a@T{0}=[{1},{1}];optimizer/v/b@T{0}=[{2},{2}];", i, scale(i),
                       3 * scale(i));
  }
  return out;
}

TEST(ResumeContinuity, fires_when_a_counter_falls) {
  const std::string run =
      numbers("scalar/optimizer_step", 40, [](int i) { return i < 25 ? i : i - 25; });
  expect_fires(kRule, run, 25);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(25));
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("falls from 24 to 0"));
}

TEST(ResumeContinuity, fires_when_the_whole_state_is_gone) {
  const std::string run = states(40, [](int i) { return i < 25 ? 1.0 : 0.001 * (i - 24); });
  expect_fires(kRule, run, 25, kStates);
  EXPECT_THAT(judge(kRule, run, kStates).steps(), ElementsAre(25));
  EXPECT_THAT(judge(kRule, run, kStates).hits[0].message, HasSubstr("state of the optimizer"));
  // All zero.
  expect_fires(kRule, states(40, [](int i) { return i == 25 ? 0 : 1; }), 25, kStates);
}

TEST(ResumeContinuity, runs_that_go_on_are_silent) {
  expect_silent(kRule, numbers("scalar/optimizer_step", 40, [](int i) { return i / 4; }));
  expect_silent(kRule, states(60, [](int i) { return std::exp(-i / 5.0); }), kStates);
  // One tensor alone, and what has no past.
  std::string one = states(40, [](int) { return 1; });
  one += "optimizer/v/c@T38,T39=[1,1],[0,0];";
  expect_silent(kRule, one, kStates);
  expect_silent(kRule, states(9, [](int i) { return i == 5 ? 0 : 1; }), kStates);
}

TEST(ResumeContinuity, tells_what_is_missing) {
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("counters of the optimizer"));
  EXPECT_THAT(creation_error(kRule, {{"fall", 1}}), HasSubstr("fall of ResumeContinuity"));
}

}  // namespace
}  // namespace smd::rules
