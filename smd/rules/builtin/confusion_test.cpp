#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "Confusion";
constexpr std::string_view kTenLabels = "labels@1=[0,1,2,3,4,5,6,7,8,9];";

std::string ten(const std::string& predictions) {
  return std::string(kTenLabels) + "predictions@1=[" + predictions + "]";
}

TEST(Confusion, fires_when_one_class_is_taken_for_another) {
  const std::string run = ten("0,1,2,3,7,5,6,7,8,9");
  expect_fires(kRule, run, 1);
  expect_fires(kRule, run, 1, {.parameters = {{"min_diag", 0}, {"max_off_diag", "0.01"}}});
  const Verdict verdict = judge(kRule, run);
  ASSERT_EQ(verdict.hits.at(0).violations.size(), 2u);
  const Violation& right = verdict.hits[0].violations[0];
  EXPECT_EQ(right.metric, "diagonal_share");
  EXPECT_EQ(right.value, 0);
  EXPECT_EQ(right.op, Op::below);
  EXPECT_EQ(right.threshold, 0.9);
  EXPECT_EQ(right.context["row"], 4);
  EXPECT_EQ(right.context["matrix"][4][7], 1);
  EXPECT_EQ(right.context["matrix"].size(), 10u);
  const Violation& wrong = verdict.hits[0].violations[1];
  EXPECT_EQ(wrong.metric, "off_diagonal_share");
  EXPECT_EQ(wrong.value, 1);
  EXPECT_EQ(wrong.op, Op::above);
  EXPECT_EQ(wrong.context["row"], 4);
  EXPECT_EQ(wrong.context["column"], 7);
  EXPECT_FALSE(wrong.context.contains("matrix"));
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("0 % of class 4"));
}

TEST(Confusion, a_perfect_result_is_silent) { expect_silent(kRule, ten("0,1,2,3,4,5,6,7,8,9")); }

TEST(Confusion, shares_equal_to_the_thresholds_are_accepted) {
  const std::string run = "labels@0=[0,0,0,0,1]; predictions@0=[0,0,0,1,1]";
  expect_silent(kRule, run, {.parameters = {{"min_diag", 0.75}, {"max_off_diag", 0.25}}});
  expect_fires(kRule, run, 0, {.parameters = {{"min_diag", 0.76}, {"max_off_diag", 0.25}}});
  expect_fires(kRule, run, 0, {.parameters = {{"min_diag", 0.75}, {"max_off_diag", 0.24}}});
}

TEST(Confusion, shares_can_be_those_of_predictions) {
  // All of class 0 is right, but only half of what is predicted as 0.
  const std::string run = "labels@0=[0,0,1,1,1,1]; predictions@0=[0,0,0,0,1,1]";
  const Json strict = {{"min_diag", 0.6}, {"max_off_diag", 1}};
  Json by_prediction = strict;
  by_prediction["normalize"] = "pred";
  EXPECT_EQ(judge(kRule, run, {.parameters = strict}).hits.at(0).violations.at(0).context["row"],
            1);
  EXPECT_EQ(
      judge(kRule, run, {.parameters = by_prediction}).hits.at(0).violations.at(0).context["row"],
      0);
  const Json off = {{"min_diag", 0}, {"max_off_diag", 0.4}, {"normalize", "pred"}};
  EXPECT_THAT(judge(kRule, run, {.parameters = off}).hits.at(0).message,
              HasSubstr("50 % of predictions of 0 are class 1"));
}

TEST(Confusion, only_the_pairs_of_the_step_count) {
  expect_silent(kRule, "labels@0=[0,1]; predictions@0=[0,1]; labels@1=[1]; predictions@1=[1]");
  expect_fires(kRule, "labels@0=[0,1]; predictions@0=[0,1]; labels@1=[1]; predictions@1=[0]", 1);
}

TEST(Confusion, classes_out_of_range_are_an_error) {
  const CaseOptions two{.parameters = {{"category_no", "2"}}};
  EXPECT_THAT(judge(kRule, "labels@3=[0,2]; predictions@3=[0,1]", two).error,
              HasSubstr("Step 3, 'labels' and 'predictions': A label is 2; with 2 classes it must "
                        "be at least 0 and at most 1."));
  EXPECT_THAT(judge(kRule, "labels@3=[0,1]; predictions@3=[0,-1]").error,
              HasSubstr("A prediction is -1"));
}

TEST(Confusion, empty_classes_are_left_out) {
  expect_silent(kRule, "labels@0=[0,9]; predictions@0=[0,9]",
                {.parameters = {{"category_no", 50}}});
}

TEST(Confusion, tensors_go_by_name_and_then_by_collection) {
  const std::string by_name = "labels@0=[0,1]; predictions@0=[1,0]; a@0=[0,1]; b@0=[0,1]";
  const CaseOptions collections{.parameters = {{"labels", "y"}, {"predictions", "p"}},
                                .collections = {{"labels", "^a$"}, {"predictions", "^b$"}}};
  expect_fires(kRule, by_name, 0, {.collections = collections.collections});
  expect_silent(kRule, by_name, collections);
  expect_fires(kRule, by_name + "; y@1=[0,1]; p@1=[1,0]", 1, collections);
  // Letters stand for themselves.
  expect_silent(kRule, "labels@0=[0,1]; p.x@0=[0,1]; pax@0=[1,0]",
                {.parameters = {{"predictions", "p.x"}}});
}

TEST(Confusion, scores_are_noticed_and_nan_is_wrong) {
  expect_silent(kRule, "labels@0=[0,1]; predictions@0=[[0.9,0.1],[0.3,0.7]]");
  expect_fires(kRule, "labels@0=[0,1]; predictions@0=[[0.9,0.1],[0.7,0.3]]", 0);
  expect_silent(kRule, "labels@0=[0,1]; predictions@0=[0.2,0.8]");
  expect_fires(kRule, "labels@0=[0,1]; predictions@0=[0.2,nan]", 0);
  EXPECT_THAT(judge(kRule, "labels@0=[0,1,1]; predictions@0=[0,1]").error,
              HasSubstr("'predictions' has 2 predictions for the 3 labels of 'labels'"));
}

TEST(Confusion, many_classes_are_counted_without_a_full_matrix) {
  const Verdict verdict = judge(kRule, "labels@0=[0,500000]; predictions@0=[0,499999]");
  EXPECT_EQ(verdict.hits.at(0).violation_count, 2u);
  EXPECT_FALSE(verdict.hits[0].violations[0].context.contains("matrix"));
  EXPECT_THAT(judge(kRule, "labels@0=[0,5e12]; predictions@0=[0,1]").missing.value_or(""),
              HasSubstr("cannot be a class"));
}

TEST(Confusion, tells_what_it_needs) {
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""),
              HasSubstr("needs labels (collection 'labels'"));
  EXPECT_THAT(judge(kRule, "labels@0=[0,1]; predictions@1=[0,1]").missing.value_or(""),
              HasSubstr("of the same step"));
  EXPECT_THAT(judge(kRule, "labels@0=[0.5,1]; predictions@0=[0,1]").missing.value_or(""),
              HasSubstr("Labels must be whole numbers"));
}

TEST(Confusion, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"category_no", 1}}), HasSubstr("at least 2"));
  EXPECT_THAT(creation_error(kRule, {{"min_diag", "1.1"}}), HasSubstr("at most 1"));
  EXPECT_THAT(creation_error(kRule, {{"max_off_diag", -1}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"normalize", "all"}}), HasSubstr("one of true, pred"));
}

}  // namespace
}  // namespace smd::rules
