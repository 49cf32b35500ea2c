#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "SimilarAcrossRuns";

// Keeps what was logged.
class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

CaseOptions against(std::string_view other, Json parameters = Json::object()) {
  return {.parameters = std::move(parameters), .other_trials = {RuleCase(other).trial()}};
}

TEST(SimilarAcrossRuns, fires_where_the_runs_differ) {
  expect_fires(kRule, "w@0=[1,2]; w@5=[1,2.1]", 5, against("w@0=[1,2]; w@5=[1,2]"));
}

TEST(SimilarAcrossRuns, is_silent_within_the_tolerance) {
  expect_silent(kRule, "w@0=[1,2]; w@5=[1,2.00001]", against("w@0=[1,2]; w@5=[1,2]"));
  expect_fires(kRule, "w@0=[1,2]; w@5=[1,2.00001]", 5,
               against("w@0=[1,2]; w@5=[1,2]", {{"rtol", 0}}));
  expect_silent(kRule, "w@5=[1,2.1]", against("w@5=[1,2]", {{"atol", "0.2"}}));
}

TEST(SimilarAcrossRuns, tells_the_worst_element) {
  const Verdict verdict =
      judge(kRule, "w@5=[[1,2],[3,4.5]]", against("w@5=[[1,2.25],[3,4]]; x@5=[1]"));
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "difference");
  EXPECT_EQ(hit.value, 0.5);
  EXPECT_EQ(hit.op, Op::above);
  EXPECT_DOUBLE_EQ(hit.threshold, 1e-8 + 4e-5);
  EXPECT_EQ(hit.context["max_abs_difference"], 0.5);
  EXPECT_EQ(hit.context["max_rel_difference"], 0.125);
  EXPECT_EQ(hit.context["index"], 3);
  EXPECT_EQ(hit.context["value"], 4.5);
  EXPECT_EQ(hit.context["other_value"], 4);
  EXPECT_EQ(hit.context["differing"], 2);
  EXPECT_TRUE(hit.context["other_trial"].is_string());
  EXPECT_EQ(hit.context["uncompared"], 0);
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("'w' is 4.5 here and 4 in '"));
}

TEST(SimilarAcrossRuns, shapes_must_be_the_same_and_element_types_need_not) {
  const Verdict verdict = judge(kRule, "w@0=[1,2]", against("w@0=[[1,2]]"));
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).metric, "shape_differs");
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("has the shape (2) here and (1, 2) in '"));
  expect_silent(kRule, "w@0:float16=[1,2]", against("w@0:float64=[1,2]"));
  expect_silent(kRule, "w@0:int32=[1,2]", against("w@0:int64=[1,2]"));
  expect_silent(kRule, "w@0:complex64=[[1,0]]", against("w@0:float32=[1]"));
  expect_fires(kRule, "w@0:complex64=[[1,1]]", 0, against("w@0:float32=[1]"));
}

TEST(SimilarAcrossRuns, nan_is_equal_to_nan_unless_told) {
  expect_silent(kRule, "w@0=[nan,inf]", against("w@0=[nan,inf]"));
  expect_fires(kRule, "w@0=[nan]", 0, against("w@0=[nan]", {{"equal_nan", "false"}}));
  const Verdict verdict = judge(kRule, "w@0=[1,nan]", against("w@0=[1,2]"));
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(verdict.hits[0].violations[0].context["value"], "NaN");
  expect_fires(kRule, "w@0=[1]", 0, against("w@0=[inf]"));
}

TEST(SimilarAcrossRuns, the_other_run_is_the_reference) {
  expect_silent(kRule, "w@0=[1]", against("w@0=[2]", {{"rtol", 0.5}}));
  expect_fires(kRule, "w@0=[2]", 0, against("w@0=[1]", {{"rtol", 0.5}}));
}

TEST(SimilarAcrossRuns, integers_must_be_equal_unless_a_tolerance_is_given) {
  const std::string big = "n@0:int64=[9007199254740992]";
  expect_silent(kRule, big, against(big));
  expect_fires(kRule, "n@0:int64=[1000001]", 0, against("n@0:int64=[1000000]"));
  expect_silent(kRule, "n@0:int64=[1000001]", against("n@0:int64=[1000000]", {{"rtol", "1e-5"}}));
}

TEST(SimilarAcrossRuns, what_the_other_run_lacks_is_counted_or_fires) {
  const std::string run = "w@0=[1]; w@5=[1]; x@5=[1]; w@6=[2]";
  const std::string other = "w@0=[1]; y@5=[1]; w@6=[1]";
  const auto log = std::make_shared<Messages>();
  CaseOptions options = against(other);
  options.log = log;
  const Verdict verdict = judge(kRule, run, options);
  ASSERT_THAT(verdict.steps(), ElementsAre(6));
  EXPECT_EQ(verdict.hits[0].violations.at(0).context["uncompared"], 2);
  EXPECT_THAT(log->texts, ElementsAre(HasSubstr("could not compare 2 values")));
  const Verdict strict = judge(kRule, run, against(other, {{"missing", "fire"}}));
  ASSERT_THAT(strict.steps(), ElementsAre(5, 6));
  EXPECT_EQ(strict.hits[0].violation_count, 2u);
  EXPECT_EQ(strict.hits[0].violations[0].metric, "missing_values");
  EXPECT_THAT(strict.hits[0].message, HasSubstr("'w' is not there at step 5 in '"));
}

TEST(SimilarAcrossRuns, runs_without_anything_in_common_are_not_judged) {
  EXPECT_THAT(judge(kRule, "w@0=[1]", against("v@0=[1]")).missing.value_or(""),
              HasSubstr("needs the same tensors at the same steps in '"));
  EXPECT_THAT(judge(kRule, "w~mean@0=1", against("w~mean@0=2")).missing.value_or(""),
              HasSubstr("needs the values of tensors"));
  EXPECT_TRUE(judge(kRule, "w@0=[1]", against("w~mean@0=1")).missing.has_value());
}

TEST(SimilarAcrossRuns, a_place_without_a_run_is_told) {
  auto nowhere = Trial::open(storage::memory_storage(), {});
  ASSERT_TRUE(nowhere.ok());
  CaseOptions options{.parameters = {{"other_timeout", 0}},
                      .other_trials = {std::shared_ptr<Trial>(std::move(*nowhere))}};
  EXPECT_THAT(judge(kRule, "w@0=[1]", options).missing.value_or(""),
              HasSubstr("There is no run to compare with in '"));
}

TEST(SimilarAcrossRuns, a_growing_run_is_waited_for_once) {
  // It has not ended, and nothing more comes.
  CaseOptions options{.parameters = {{"other_timeout", "0.05"}, {"missing", "fire"}},
                      .other_trials = {RuleCase("w@0=[1]", {.has_ended = false}).trial()}};
  std::string run = "w@0=[1]";
  for (int i = 1; i < 200; ++i) run += "; w@" + std::to_string(i) + "=[1]";
  const Verdict verdict = judge(kRule, run, options);
  // Steps that may still come are not missing.
  EXPECT_TRUE(verdict.hits.empty());
  EXPECT_EQ(verdict.missing, std::nullopt);
}

TEST(SimilarAcrossRuns, several_runs_are_all_compared) {
  CaseOptions options{.other_trials = {RuleCase("w@0=[1]").trial(), RuleCase("w@0=[2]").trial(),
                                       RuleCase("w@0=[3]").trial()}};
  EXPECT_EQ(judge(kRule, "w@0=[1]", options).hits.at(0).violation_count, 2u);
}

TEST(SimilarAcrossRuns, workers_belong_together_by_name) {
  const std::string run = "w@0=[1]; w@0#worker_1=[2]";
  expect_silent(kRule, run, against("w@0=[1]; w@0#worker_1=[3]"));
  const Verdict verdict =
      judge(kRule, run, against("w@0=[1]; w@0#worker_1=[3]", {{"workers", "all"}}));
  ASSERT_EQ(verdict.hits.at(0).violation_count, 1u);
  EXPECT_EQ(verdict.hits[0].violations[0].worker, "worker_1");
  expect_silent(kRule, run, against("w@0=[1]; w@0#worker_1=[2]", {{"workers", "all"}}));
  // A run of one worker is compared with everybody.
  expect_silent(kRule, "w@0#worker_3=[1]; x@0=[1]", against("w@0=[1]", {{"workers", "worker_3"}}));
}

TEST(SimilarAcrossRuns, selectors_are_a_union_with_older_names) {
  const std::string run = "a@0=[1]; weight@1=[1]; b@2=[1]";
  const std::string other = "a@0=[2]; weight@1=[2]; b@2=[2]";
  EXPECT_THAT(judge(kRule, run, against(other)).steps(), ElementsAre(0, 1, 2));
  EXPECT_THAT(judge(kRule, run, against(other, {{"include_regex", "b"}})).steps(), ElementsAre(2));
  EXPECT_THAT(
      judge(kRule, run, against(other, {{"tensor_regex", "b"}, {"collection_names", "weights"}}))
          .steps(),
      ElementsAre(1, 2));
}

TEST(SimilarAcrossRuns, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {}), HasSubstr("SimilarAcrossRuns needs other_trials"));
  EXPECT_THAT(creation_error(kRule, {{"other_trial", "a"}, {"other_trials", "b"}}),
              HasSubstr("given twice"));
  EXPECT_THAT(creation_error(kRule, {{"missing", "panic"}}), HasSubstr("one of ignore, fire"));
  EXPECT_THAT(creation_error(kRule, {{"other_timeout", -1}}), HasSubstr("at least 0"));
}

}  // namespace
}  // namespace smd::rules
