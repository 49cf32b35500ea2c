#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "RankDivergence";

// Two weights on three workers, equal at the steps 0 and 1.
const std::string kEqual =
    "weight/a@0=[1,2]; weight/a@0#worker_1=[1,2]; weight/a@0#worker_2=[1,2];"
    "weight/a@1=[1,3]; weight/a@1#worker_1=[1,3]; weight/a@1#worker_2=[1,3];"
    "weight/b@0=[5]; weight/b@0#worker_1=[5]; weight/b@0#worker_2=[5];"
    "weight/b@1=[5]; weight/b@1#worker_1=[5]; weight/b@1#worker_2=[5];";

TEST(RankDivergence, fires_at_the_first_step_with_different_weights) {
  const std::string run =
      kEqual +
      "weight/a@2=[1,4]; weight/a@2#worker_1=[1,4.5]; weight/a@2#worker_2=[1,4];"
      "weight/a@3=[1,4]; weight/a@3#worker_1=[1,9]; weight/a@3#worker_2=[1,4]";
  expect_fires(kRule, run, 2);
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(2));
  EXPECT_EQ(verdict.finding->severity, Severity::error);
  const Violation& hit = verdict.hits[0].violations.at(0);
  EXPECT_EQ(hit.worker, "worker_1");
  EXPECT_EQ(hit.value, 0.5);
  EXPECT_EQ(hit.context["compared"], "values");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("worker_1 differs from worker_0, worker_2"));
}

TEST(RankDivergence, the_majority_is_right_also_without_the_first_worker) {
  const Verdict verdict = judge(
      kRule, kEqual + "weight/a@2=[9,9]; weight/a@2#worker_1=[1,4]; weight/a@2#worker_2=[1,4]");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).worker, "worker_0");
}

TEST(RankDivergence, saved_statistics_are_compared_where_there_are_no_values) {
  const std::string run =
      "weight/a~l2@0=1; weight/a~l2@0#worker_1=1.0000001; weight/a~max@0=3;"
      "weight/a~max@0#worker_1=3;";
  expect_silent(kRule, run);
  expect_fires(kRule, run + "weight/a~l2@1=1; weight/a~l2@1#worker_1=1.001", 1);
  expect_fires(kRule, run + "weight/a~max@1=3; weight/a~max@1#worker_1=3.0000001", 1);
  const Verdict verdict = judge(kRule, run + "weight/a~l2@1=1; weight/a~l2@1#worker_1=1.001");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).metric, "l2");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["compared"], "statistics");
  expect_silent(kRule, run + "weight/a~l2@1=1; weight/a~l2@1#worker_1=1.001",
                {.parameters = {{"tolerance", 0.01}}});
}

TEST(RankDivergence, equal_weights_and_single_workers_are_silent) {
  expect_silent(kRule, kEqual);
  expect_silent(kRule, "weight/a@0=[1]; weight/a@1=[2]");
  // Workers that save at other steps.
  expect_silent(kRule, "weight/a@0=[1]; loss@0#worker_1=1; weight/a@1#worker_1=[2]; loss@1=1");
  expect_silent(kRule, kEqual + "loss@2=1; loss@2#worker_1=2; weight/a@2=[1]");
}

TEST(RankDivergence, parts_of_a_whole_are_information_at_most) {
  // Other shapes, and other values from the start.
  expect_silent(kRule,
                "weight/a@0=[1,2]; weight/a@0#worker_1=[1]; weight/a@1=[1,2];"
                "weight/a@1#worker_1=[3]");
  const std::string run =
      "weight/a@0=[1]; weight/a@0#worker_1=[2]; weight/a@1=[1]; weight/a@1#worker_1=[3]";
  const Verdict verdict = judge(kRule, run);
  EXPECT_THAT(verdict.steps(), ElementsAre(0));
  EXPECT_EQ(verdict.finding->severity, Severity::info);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("from the first saved step on"));
  EXPECT_EQ(judge(kRule, run, {.parameters = {{"replicated", true}}}).finding->severity,
            Severity::error);
}

TEST(RankDivergence, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"tolerance", -1}}), HasSubstr("tolerance of RankDivergence"));
  EXPECT_THAT(creation_error(kRule, {{"replicated", "maybe"}}), HasSubstr("replicated"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("weights"));
}

}  // namespace
}  // namespace smd::rules
