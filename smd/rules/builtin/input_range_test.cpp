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

constexpr std::string_view kRule = "InputRange";

std::string batches(std::string_view name, int count, const std::function<double(int)>& scale) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("{0}@T{1}=[{2},{3},{4}];", name, i, -1.1 * scale(i), 0.3 * scale(i),
                       1.2 * scale(i));
  }
  return out;
}

TEST(InputRange, fires_for_raw_pixels_and_for_what_was_divided_twice) {
  expect_fires(kRule, batches("Net_input_0", 5, [](int) { return 128; }), 2);
  expect_fires(kRule, batches("Net_input_0", 5, [](int) { return 1 / 255.0; }), 2);
  expect_fires(kRule, batches("x", 5, [](int) { return 50; }), 2,
               {.collections = {{"inputs", "^x$"}}});
  const Verdict verdict = judge(kRule, batches("Net_input_0", 9, [](int) { return 128; }));
  EXPECT_THAT(verdict.steps(), ElementsAre(2));
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("were not normalised"));
}

TEST(InputRange, healthy_inputs_are_silent) {
  expect_silent(kRule, batches("Net_input_0", 9, [](int) { return 1; }));
  // A single odd batch, and outputs that go into the loss.
  expect_silent(kRule, batches("Net_input_0", 9, [](int i) { return i == 4 ? 500 : 1; }) +
                           batches("CrossEntropyLoss_input_0", 9, [](int) { return 90; }));
  // Tokens, with and without their type, and constant inputs.
  expect_silent(kRule, "Net_input_0@T0,T1,T2,T3:int64=[400,7],[399,1],[5,900],[400,7]");
  expect_silent(kRule,
                "Net_input_0~mean@T0,T1,T2=400,410,420; Net_input_0~std@T0,T1,T2=90,95,92;"
                "Net_input_0~min@T0,T1,T2=0,0,1; Net_input_0~max@T0,T1,T2=900,801,777;"
                "Net_input_0~sum@T0,T1,T2=4000,4100,4200");
  expect_silent(kRule, "Net_input_0@T0,T1,T2,T3=[0,0],[0,0],[0,0],[0,0]");
  expect_silent(kRule, "Net_input_0@E0,E1,E2=[900,1],[900,1],[900,1]; Net_input_0@T3=[1,-1]");
}

TEST(InputRange, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"high", 0}}), HasSubstr("high of InputRange"));
  EXPECT_THAT(judge(kRule, "layers.0.fc_input_0@0=[1]").missing.value_or(""),
              HasSubstr("inputs of the model"));
}

}  // namespace
}  // namespace smd::rules
