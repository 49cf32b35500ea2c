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

constexpr std::string_view kRule = "PersistentHighLoss";

std::string losses(int count, const std::function<double(int)>& loss) {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("loss@{}={};", i, loss(i));
  return out;
}
double noise(int i) { return 0.3 * std::sin(i * 12.9898); }

TEST(PersistentHighLoss, fires_when_half_of_the_last_values_are_above_the_first_ones) {
  // 50 values up to 3, then 25 of 50 above it.
  expect_fires(kRule, losses(150, [](int i) { return i >= 75 ? 5 : 3 - 0.01 * i; }), 99);
  EXPECT_THAT(judge(kRule, losses(150, [](int i) { return i >= 75 ? 5 : 3; })).steps(),
              ElementsAre(99));
  expect_fires(kRule, losses(40, [](int i) { return i + 1; }), 19,
               {.parameters = {{"window", 10}}});
  expect_fires(kRule, losses(150, [](int i) { return i >= 60 ? HUGE_VAL : 3; }), 99);
}

TEST(PersistentHighLoss, healthy_losses_are_silent) {
  expect_silent(kRule, losses(300, [](int i) { return 3 * std::exp(-i / 80.0) + noise(i); }));
  // Noisy small batches that learn nothing any more, and large losses of a regression.
  expect_silent(kRule, losses(300, [](int i) { return 1 + noise(i); }));
  expect_silent(kRule, losses(300, [](int i) { return 900 * std::exp(-i / 200.0) + noise(i); }));
  expect_silent(kRule, losses(300, [](int i) { return i == 200 ? 50 : 1 + noise(i); }));
  expect_silent(kRule, losses(60, [](int i) { return i + 1; }));
}

TEST(PersistentHighLoss, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"window", 1}}), HasSubstr("at least 5"));
  EXPECT_THAT(creation_error(kRule, {{"share", 2}}), HasSubstr("share of PersistentHighLoss"));
}

}  // namespace
}  // namespace smd::rules
