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

constexpr std::string_view kRule = "WeightCollapse";

std::string weights(int count, const std::function<double(int)>& scale) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("weight/a@T{0}=[{1},-{1}];weight/b@T{0}=[{1},{1}];weight/c@T{0}=[1,1];", i,
                       scale(i));
  }
  return out;
}

TEST(WeightCollapse, fires_when_most_weights_wither) {
  // Below 0.4 from step 10 on.
  const std::string run = weights(30, [](int i) { return std::pow(0.9, i); });
  expect_fires(kRule, run, 13);
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(13));
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("2 of 3 weights"));
  expect_fires(kRule, "weight/a~l2@0,1,2,3,4,5=5,1,1,1,1,1", 5);
}

TEST(WeightCollapse, healthy_weights_are_silent) {
  expect_silent(kRule, weights(60, [](int i) { return 1 + 0.02 * i; }));
  expect_silent(kRule, weights(60, [](int i) { return i % 5 == 4 ? 1 : 0.1; }));
  // A third of them, gains that begin at zero, and single numbers.
  expect_silent(kRule, weights(60, [](int) { return 1; }) +
                           "weight/d@T0,T1,T2,T3,T4,T5=[9,9],[1,1],[1,1],[1,1],[1,1],[1,1]");
  expect_silent(kRule, "weight/g@0,1,2,3,4,5,6=5,1,1,1,1,1,1; weight/a@0,6=[1,1],[1,1]");
}

TEST(WeightCollapse, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"shrunk", 1}}), HasSubstr("shrunk of WeightCollapse"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("weights"));
}

}  // namespace
}  // namespace smd::rules
