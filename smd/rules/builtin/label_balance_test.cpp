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

constexpr std::string_view kRule = "LabelBalance";

// Batches of 100 labels, `rare` of which are of class 1.
std::string labels(int batches, int rare) {
  std::string out;
  for (int i = 0; i < batches; ++i) {
    out += fmt::format("labels@T{}:int64=[", i);
    for (int k = 0; k < 100; ++k) out += k < rare ? "1," : "0,";
    out.back() = ']';
    out += ';';
  }
  return out;
}

TEST(LabelBalance, fires_when_a_class_is_rare) {
  expect_fires(kRule, labels(6, 2), 1);
  const Verdict verdict = judge(kRule, labels(6, 2));
  EXPECT_THAT(verdict.steps(), ElementsAre(1));
  EXPECT_THAT(verdict.hits[0].message,
              HasSubstr("Of 200 labels, 196 are of class 0 and only 4 of class 1"));
}

TEST(LabelBalance, waits_for_enough_samples_and_lets_small_differences_pass) {
  expect_silent(kRule, labels(6, 10));
  expect_silent(kRule, labels(1, 1));
  // A class that is missing was never promised.
  expect_silent(kRule, labels(6, 0));
  expect_silent(kRule, labels(6, 2), {.parameters = {{"ratio", 60}}});
}

TEST(LabelBalance, words_of_sequences_and_quantities_are_no_classes) {
  std::string words;
  for (int i = 0; i < 60; ++i)
    words += fmt::format("labels@T{}:int64=[[0,0,0,0,{}]];", i, i == 0 ? 1 : 0);
  expect_silent(kRule, words);
  expect_silent(kRule, "labels@T0,T1=[0.5,1.7],[0.5,2.2]", {.parameters = {{"samples", 2}}});
  EXPECT_THAT(creation_error(kRule, {{"ratio", 1}}), HasSubstr("above 1"));
}

}  // namespace
}  // namespace smd::rules
