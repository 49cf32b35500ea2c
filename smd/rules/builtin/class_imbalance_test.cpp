#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "ClassImbalance";

// "name@step=[…]" with each class as often as given.
std::string entry(const std::string& name, const std::string& step,
                  const std::vector<std::pair<double, int>>& repeated) {
  std::string out;
  for (const auto& [number, count] : repeated) {
    for (int i = 0; i < count; ++i) out += fmt::format("{}{}", out.empty() ? "" : ",", number);
  }
  return name + "@" + step + "=[" + out + "];";
}

CaseOptions samples(int count, Json more = Json::object()) {
  Json parameters = {{"samples", count}};
  parameters.update(more);
  return {.parameters = parameters};
}

TEST(ClassImbalance, fires_when_a_class_is_rare) {
  const std::string run =
      entry("labels", "3", {{0, 990}, {1, 10}}) + entry("predictions", "3", {{0, 990}, {1, 10}});
  expect_fires(kRule, run, 3);
  const Verdict verdict = judge(kRule, run);
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.tensor, "labels");
  EXPECT_EQ(hit.metric, "imbalance");
  EXPECT_EQ(hit.value, 99);
  EXPECT_EQ(hit.threshold, 10);
  EXPECT_EQ(hit.context["counts"]["0"], 990);
  EXPECT_EQ(hit.context["counts"]["1"], 10);
  EXPECT_EQ(hit.context["error_rates"]["1"], 0);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("990 samples of class 0 and 10 of class 1"));
}

TEST(ClassImbalance, seventy_percent_wrong_is_accepted) {
  const std::string labels = entry("labels", "3", {{0, 400}, {1, 100}});
  expect_silent(kRule, labels + entry("predictions", "3", {{0, 470}, {1, 30}}));
  expect_fires(kRule, labels + entry("predictions", "3", {{0, 471}, {1, 29}}), 3);
}

TEST(ClassImbalance, a_class_that_is_mostly_wrong_is_named) {
  const Verdict verdict = judge(kRule, "labels@0=[1,1,2,2]; predictions@0=[1,1,1,1]", samples(4));
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "misprediction");
  EXPECT_EQ(hit.value, 1);
  EXPECT_EQ(hit.context["class"], 2);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("100 % of the 2 samples of class 2"));
}

TEST(ClassImbalance, counts_add_up_over_steps) {
  const std::string run = "labels@0,1,2=[0,0],[0,0],[1,1]; predictions@0,1,2=[0,0],[0,0],[1,1]";
  expect_fires(kRule, run, 2, samples(6, {{"threshold_imbalance", 1.5}}));
  expect_silent(kRule, run, samples(6, {{"threshold_imbalance", 2}}));
}

TEST(ClassImbalance, is_evaluated_again_at_every_later_step) {
  const std::string run = "labels@0,1,2=[0,1],[0,1],[1,1]; predictions@0,1,2=[1,1],[1,1],[1,1]";
  EXPECT_THAT(judge(kRule, run, samples(4)).steps(), ElementsAre(1, 2));
}

TEST(ClassImbalance, one_class_alone_is_balanced_unless_others_are_known) {
  const std::string run = "labels@0=[3,3]; predictions@0=[3,3]";
  expect_silent(kRule, run, samples(2));
  expect_fires(kRule, run, 0, samples(2, {{"num_classes", "4"}}));
  EXPECT_EQ(judge(kRule, run, samples(2, {{"num_classes", 4}})).hits.at(0).violations.at(0).value,
            INFINITY);
  EXPECT_THAT(judge(kRule, run, samples(2, {{"num_classes", 3}})).error,
              HasSubstr("A label of 'labels' is 3 at step 0, and num_classes is 3."));
}

TEST(ClassImbalance, scores_and_one_hot_labels_are_turned_into_classes) {
  const std::string run = "labels@0=[[1,0],[0,1]]; predictions@0=[[0.9,0.1],[0.8,0.2]]";
  expect_fires(kRule, run, 0, samples(2, {{"argmax", "true"}}));
  const Verdict verdict = judge(kRule, run, samples(2));
  EXPECT_EQ(verdict.status, RuleStatus::error);
  EXPECT_THAT(verdict.error, HasSubstr("'predictions' has 4 predictions for the 2 labels"));
  EXPECT_THAT(verdict.error, HasSubstr("give argmax=true"));
}

TEST(ClassImbalance, probabilities_go_to_the_nearest_class_and_nan_is_wrong) {
  expect_silent(kRule, "labels@0=[0,1]; predictions@0=[0.4,0.5]", samples(2));
  expect_fires(kRule, "labels@0=[0,1]; predictions@0=[0.4,nan]", 0, samples(2));
}

TEST(ClassImbalance, small_classes_can_be_left_out_of_mispredictions) {
  const std::string run = "labels@0=[0,0,1]; predictions@0=[0,0,0]";
  expect_fires(kRule, run, 0, samples(3));
  expect_silent(kRule, run, samples(3, {{"min_class_samples", 2}}));
}

TEST(ClassImbalance, negative_and_large_labels_are_classes_too) {
  expect_silent(kRule, "labels@0=[-1,70000]; predictions@0=[-1,70000]", samples(2));
  expect_fires(kRule, "labels@0=[-1,70000]; predictions@0=[-1,-1]", 0, samples(2));
}

TEST(ClassImbalance, workers_are_counted_apart) {
  const std::string run =
      "labels@0=[0,0]; predictions@0=[0,0]; labels@0#worker_1=[0,1]; predictions@0#worker_1=[0,0]";
  expect_silent(kRule, run, samples(2));
  const Verdict verdict = judge(kRule, run, samples(2, {{"workers", "all"}}));
  ASSERT_EQ(verdict.hits.size(), 1u);
  EXPECT_EQ(verdict.hits[0].violations.at(0).worker, "worker_1");
}

TEST(ClassImbalance, tells_what_it_needs) {
  EXPECT_THAT(judge(kRule, "labels@0=[0,1]; predictions@0=[0,1]").missing.value_or(""),
              HasSubstr("It needs 500 samples with labels and predictions"));
  EXPECT_THAT(judge(kRule, "labels@0=[0,1]").missing.value_or(""),
              HasSubstr("needs predictions (names with '.*predictions')"));
  const Verdict regression = judge(kRule, "labels@0=[0.5,1.2]; predictions@0=[0,1]");
  EXPECT_EQ(regression.status, RuleStatus::no_issues_found);
  EXPECT_THAT(regression.missing.value_or(""), HasSubstr("Labels must be whole numbers"));
}

TEST(ClassImbalance, tensors_are_chosen_by_name) {
  const Json names = {{"labels_regex", "^y$"}, {"predictions_regex", "^p$"}};
  expect_fires(kRule, "y@0=[0,1]; p@0=[0,0]; labels@0=[0,1]; predictions@0=[0,1]", 0,
               samples(2, names));
}

TEST(ClassImbalance, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"threshold_imbalance", 0.5}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_misprediction", "70"}}), HasSubstr("at most 1"));
  EXPECT_THAT(creation_error(kRule, {{"samples", "0"}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"argmax", 2}}), HasSubstr("true or false"));
  EXPECT_THAT(creation_error(kRule, {{"labels_regex", "("}}), HasSubstr("("));
}

}  // namespace
}  // namespace smd::rules
