#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "NLPSequenceRatio";
const CaseOptions kX{.parameters = {{"tensor_regex", "x"}}};

TEST(NLPSequenceRatio, fires_above_half) {
  expect_fires(kRule, "x@0=[[5,0],[0,7]]; x@1=[[5,0],[0,0]]", 1, kX);
}

TEST(NLPSequenceRatio, half_is_accepted) { expect_silent(kRule, "x@0=[[5,0],[0,7]]", kX); }

TEST(NLPSequenceRatio, reads_the_first_input_of_the_embedding_by_default) {
  expect_fires(kRule, "net0_embedding0_input_0@3:int32=[0,0,1]; x@0=[0,0]", 3);
  EXPECT_THAT(judge(kRule, "x@0=[0,0]").missing.value_or(""),
              HasSubstr("It needs token ids (names with '.*embedding0_input_0')"));
}

TEST(NLPSequenceRatio, integers_of_every_width_are_counted) {
  for (const char* type : {"int64", "int32", "uint8", "int16", "float32", "float16"}) {
    expect_fires(kRule, std::string("x@2:") + type + "=[[0,0],[0,3]]", 2, kX);
  }
}

TEST(NLPSequenceRatio, each_token_has_its_threshold) {
  const std::string run = "x@0=[1,1,2,3]; x@1=[1,2,2,3]";
  const auto with = [](const Json& values, const Json& thresholds) {
    return CaseOptions{.parameters = {{"tensor_regex", "x"},
                                      {"token_values", values},
                                      {"token_thresholds_percent", thresholds}}};
  };
  expect_fires(kRule, run, 0, with("1, 2", "40, 40"));
  expect_fires(kRule, run, 1, with("1,2", "50,40"));
  expect_silent(kRule, run, with("1,2", "50,50"));
  const Verdict verdict = judge(kRule, "x@4=[[1,1,1],[2,2,2]]", with({1, 2}, {10, 49.5}));
  ASSERT_EQ(verdict.hits.at(0).violations.size(), 2u);
  const Violation& hit = verdict.hits[0].violations[1];
  EXPECT_EQ(hit.tensor, "x");
  EXPECT_EQ(hit.value, 50);
  EXPECT_EQ(hit.threshold, 49.5);
  EXPECT_EQ(hit.context["token"], 2);
  EXPECT_EQ(hit.context["token_count"], 3);
  EXPECT_EQ(hit.context["shape"], Json({2, 3}));
  EXPECT_EQ(verdict.hits[0].message, "50 % of 'x' are the token 1, and 10 % are accepted.");
}

TEST(NLPSequenceRatio, large_batches_are_counted_whole) {
  std::string zeros, ones;
  for (int i = 0; i < 5001; ++i) zeros += "0,";
  for (int i = 0; i < 4999; ++i) ones += i == 4998 ? "1" : "1,";
  expect_fires(kRule, "x@0:int64=[" + zeros + ones + "]", 0, kX);
}

TEST(NLPSequenceRatio, empty_batches_are_left_out) {
  EXPECT_EQ(judge(kRule, "x@0=[]", kX).hits.size(), 0u);
  EXPECT_THAT(judge(kRule, "x~mean@0=0", kX).missing.value_or(""),
              HasSubstr("only numbers about them"));
}

TEST(NLPSequenceRatio, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"token_values", "0,1"}}),
              HasSubstr("has 2 token_values and 1 token_thresholds_percent"));
  EXPECT_THAT(creation_error(kRule, {{"token_values", "pad"}}), HasSubstr("a list of numbers"));
  EXPECT_THAT(creation_error(kRule, {{"token_thresholds_percent", "101"}}),
              HasSubstr("at least 0 and at most 100"));
}

}  // namespace
}  // namespace smd::rules
