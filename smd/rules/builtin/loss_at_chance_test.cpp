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

constexpr std::string_view kRule = "LossAtChance";

std::string losses(int count, const std::function<double(int)>& loss) {
  std::string out = "CrossEntropyLoss_input_0@T0=[[1,2,3,4]];";
  for (int i = 0; i < count; ++i) out += fmt::format("loss@T{}={};", i, loss(i));
  return out;
}
double noise(int i) { return 0.05 * std::sin(i * 12.9898); }
const double kGuess = std::log(4);

TEST(LossAtChance, fires_when_a_classifier_still_guesses) {
  expect_fires(kRule, losses(120, [](int i) { return kGuess + noise(i); }), 119);
  expect_fires(kRule, losses(40, [](int i) { return kGuess + noise(i); }), 29,
               {.parameters = {{"patience", 30}, {"window", 10}}});
  const Verdict verdict = judge(kRule, losses(120, [](int) { return 1.9; }));
  EXPECT_THAT(verdict.steps(), ElementsAre(119));
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("guessing among 4 classes gives 1.386"));
}

TEST(LossAtChance, what_has_learned_or_is_young_is_silent) {
  expect_silent(kRule, losses(120, [](int i) { return kGuess - 0.004 * i; }));
  // Late, and converged from the start.
  expect_silent(kRule, losses(300, [](int i) { return i < 200 ? kGuess : 0.5; }));
  expect_silent(kRule, losses(300, [](int) { return 0.2; }));
  expect_silent(kRule, losses(90, [](int) { return kGuess; }));
}

TEST(LossAtChance, tells_what_is_missing) {
  EXPECT_THAT(judge(kRule, "loss@T0=1").missing.value_or(""), HasSubstr("num_classes"));
  EXPECT_THAT(creation_error(kRule, {{"num_classes", 1}}), HasSubstr("at least 2"));
}

}  // namespace
}  // namespace smd::rules
