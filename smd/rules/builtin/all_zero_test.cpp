#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "AllZero";
const Json kAll = {{"tensor_regex", ".*"}};

Json with(std::string_view name, Json value) {
  Json out = kAll;
  out[std::string(name)] = std::move(value);
  return out;
}

TEST(AllZero, fires_when_every_element_is_zero) {
  expect_fires(kRule, "x@0=[0,1]; x@7=[0,-0.0]", 7, {.parameters = kAll});
}

TEST(AllZero, the_smallest_numbers_are_not_zero) {
  expect_silent(kRule, "x@0=[0,0,0,1e-40]", {.parameters = kAll});
  expect_silent(kRule, "x@0:float32=[0,0,0,1e-40]", {.parameters = kAll});
  expect_silent(kRule, "x@0:float16=[0,5.9604644775390625e-08]", {.parameters = kAll});
  expect_silent(kRule, "x@0:float32=[0,0,0,1e-40]", {.parameters = with("threshold", 75.1)});
  expect_fires(kRule, "x@0:float32=[0,0,0,1e-40]", 0, {.parameters = with("threshold", 75)});
}

TEST(AllZero, nan_is_not_zero_and_false_is) {
  expect_silent(kRule, "x@0=[0,nan]", {.parameters = kAll});
  expect_fires(kRule, "x@1:bool=[0,0]", 1, {.parameters = kAll});
  expect_silent(kRule, "x@1:bool=[0,1]", {.parameters = kAll});
  expect_fires(kRule, "x@1:int64=[0,0]", 1, {.parameters = kAll});
  expect_fires(kRule, "x@1:complex64=[[0,0],[0,0]]", 1, {.parameters = kAll});
  expect_silent(kRule, "x@1:complex64=[[0,0],[0,1]]", {.parameters = kAll});
}

TEST(AllZero, a_share_reaches_its_threshold) {
  std::string run = "x@3=[1";
  for (int i = 1; i < 100; ++i) run += i <= 29 ? ",0" : ",1";
  run += "]";
  expect_fires(kRule, run, 3, {.parameters = with("threshold", "29")});
  expect_silent(kRule, run, {.parameters = with("threshold", 29.5)});
  const Verdict verdict = judge(kRule, run, {.parameters = with("threshold", 20)});
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "zero_percent");
  EXPECT_EQ(hit.value, 29);
  EXPECT_EQ(hit.op, Op::above);
  EXPECT_EQ(hit.threshold, 20);
  EXPECT_EQ(hit.context["elements"], 100);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("29 % of the elements of 'x' are zero"));
}

TEST(AllZero, single_numbers_count_and_empty_tensors_do_not) {
  expect_fires(kRule, "loss@0,4=1,0", 4, {.parameters = {{"collection_names", "losses"}}});
  const Verdict verdict = judge(kRule, "none@0=[]", {.parameters = kAll});
  EXPECT_TRUE(verdict.missing.has_value());
}

TEST(AllZero, extrema_tell_of_all_zeros_and_not_of_shares) {
  expect_fires(kRule, "x~abs_max@1=0", 1, {.parameters = kAll});
  expect_fires(kRule, "x~min@1=0; x~max@1=0", 1, {.parameters = kAll});
  expect_silent(kRule, "x~min@1=0; x~max@1=1", {.parameters = kAll});
  EXPECT_THAT(judge(kRule, "x~mean@1=0", {.parameters = kAll}).missing.value_or(""),
              HasSubstr("the values or abs_max of tensors"));
  expect_fires(kRule, "x~abs_max@1=0", 1, {.parameters = with("threshold", 50)});
  EXPECT_THAT(
      judge(kRule, "x~abs_max@1=1", {.parameters = with("threshold", 50)}).missing.value_or(""),
      HasSubstr("It needs the values of tensors"));
}

TEST(AllZero, all_tensors_and_workers_are_listed) {
  const Verdict verdict = judge(kRule, "b@0=[0]; a@0=[0,0]; c@0=[1]; c@0#worker_1=[0]",
                                {.parameters = {{"tensor_regex", "a|b|c"}, {"workers", "all"}}});
  const Hit& hit = verdict.hits.at(0);
  ASSERT_EQ(hit.violation_count, 3u);
  EXPECT_EQ(hit.violations[0].tensor, "a");
  EXPECT_EQ(hit.violations[0].op, Op::equal);
  EXPECT_EQ(hit.violations[1].tensor, "b");
  EXPECT_EQ(hit.violations[2].worker, "worker_1");
}

TEST(AllZero, selectors_are_a_union_and_one_is_needed) {
  const std::string run = "a@0=[0]; weight@1=[0]; b@2=[0]";
  EXPECT_THAT(
      judge(kRule, run, {.parameters = {{"tensor_regex", "b"}, {"collection_names", "weights"}}})
          .steps(),
      ElementsAre(1, 2));
  EXPECT_THAT(creation_error(kRule, {}),
              HasSubstr("AllZero needs collection_names or tensor_regex"));
  EXPECT_THAT(creation_error(kRule, {{"tensor_regex", ""}}), HasSubstr("needs"));
}

TEST(AllZero, the_threshold_is_a_percentage_above_zero) {
  EXPECT_THAT(creation_error(kRule, with("threshold", 0)), HasSubstr("above 0 and at most 100"));
  EXPECT_THAT(creation_error(kRule, with("threshold", "-1")), HasSubstr("above 0"));
  EXPECT_THAT(creation_error(kRule, with("threshold", "most")), HasSubstr("a number"));
  EXPECT_THAT(creation_error(kRule, with("treshold", 5)), HasSubstr("threshold"));
}

}  // namespace
}  // namespace smd::rules
