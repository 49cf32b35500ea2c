#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "LayerStopped";

// Three layers, of which the second follows `norm`.
std::string gradients(int count, const std::function<double(int)>& norm) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("gradient/a@T{0}=[1,-1];gradient/b@T{0}=[{1},{1}];gradient/c@T{0}=[2,{2}];",
                       i, norm(i), 1 + i % 3);
  }
  return out;
}

TEST(LayerStopped, fires_when_one_gradient_vanishes_for_good) {
  const std::string run = gradients(60, [](int i) { return i < 20 ? 1.0 : 0.0; });
  expect_fires(kRule, run, 29);
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(29));
  EXPECT_THAT(verdict.hits[0].message,
              HasSubstr("'gradient/b' has stopped at step 20: its norm is 0, before it was 1.41, "
                        "while 2 of 3 gradients go on."));
  expect_fires(kRule, gradients(60, [](int i) { return i < 20 ? 1.0 : 1e-4; }), 29);
}

TEST(LayerStopped, healthy_gradients_are_silent) {
  expect_silent(kRule, gradients(60, [](int) { return 1.0; }));
  expect_silent(kRule, gradients(60, [](int i) { return i % 5 == 4 ? 1.0 : 0.0; }));  // rare words
  expect_silent(kRule, gradients(60, [](int i) { return i < 40 ? 0.0 : 1.0; }));      // thaws
  expect_silent(kRule, gradients(60, [](int i) { return i > 20 && i < 29 ? 0.0 : 1.0; }));
  expect_silent(kRule, gradients(60, [](int i) { return 1.0 / (1 + i); }));  // fades slowly
  expect_silent(kRule, gradients(60, [](int) { return 0.0; }));              // never began
}

TEST(LayerStopped, all_that_fade_together_are_silent) {
  std::string run;
  for (int i = 0; i < 60; ++i) {
    const double norm = i < 20 ? 1 : 0;
    run += fmt::format("gradient/a@T{0}=[{1},{1}];gradient/b@T{0}=[{1},{1}];gradient/c@T{0}=[1,1];",
                       i, norm);
  }
  expect_silent(kRule, run);
}

TEST(LayerStopped, what_rests_often_may_rest_for_longer) {
  // A rest of 8 checks, then one of 24 is needed.
  const auto norm = [](int last) {
    return [last](int i) { return (i >= 10 && i < 18) || (i >= 30 && i < last) ? 0.0 : 1.0; };
  };
  expect_silent(kRule, gradients(80, norm(50)));
  expect_fires(kRule, gradients(80, norm(80)), 53);
}

TEST(LayerStopped, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"fallen", 1}}), HasSubstr("fallen of LayerStopped"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("gradients"));
}

}  // namespace
}  // namespace smd::rules
