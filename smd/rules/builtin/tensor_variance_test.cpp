#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "TensorVariance";
const Json kBand = {{"tensor_regex", ".*"}, {"max_threshold", 10}, {"min_threshold", "0.00001"}};

// Keeps what was logged.
class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

TEST(TensorVariance, fires_above_the_band) {
  expect_fires(kRule, "w@0=[-1,1]; w@4=[-4,4]", 4, {.parameters = kBand});
}

TEST(TensorVariance, is_silent_inside_of_the_band) {
  expect_silent(kRule, "w@0=[-3,3]; w@4=[-0.01,0.01]", {.parameters = kBand});
}

TEST(TensorVariance, fires_below_the_band_and_tells_the_bound) {
  const Verdict verdict = judge(kRule, "w@2=[-0.001,0.001]; v@2=[-4,4]", {.parameters = kBand});
  const auto& hits = verdict.hits.at(0).violations;
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].tensor, "v");
  EXPECT_EQ(hits[0].metric, "variance");
  EXPECT_EQ(hits[0].value, 16);
  EXPECT_EQ(hits[0].op, Op::above);
  EXPECT_EQ(hits[0].threshold, 10);
  EXPECT_EQ(hits[1].op, Op::below);
  EXPECT_DOUBLE_EQ(hits[1].value, 1e-6);
  EXPECT_EQ(hits[1].threshold, 1e-5);
}

TEST(TensorVariance, a_bound_itself_is_inside) {
  expect_silent(
      kRule, "w@0=[-2,2]",
      {.parameters = {{"tensor_regex", "w"}, {"max_threshold", 4}, {"min_threshold", 4}}});
}

TEST(TensorVariance, a_bound_that_is_not_given_is_not_tested) {
  expect_silent(kRule, "w@0=[-100,100]; v@0=[0,0]",
                {.parameters = {{"tensor_regex", "w"}, {"min_threshold", 1}}});
  expect_silent(kRule, "w@0=[0,0]", {.parameters = {{"tensor_regex", "w"}, {"max_threshold", 1}}});
  const auto log = std::make_shared<Messages>();
  expect_silent(kRule, "w@0=[-100,100]; v@0=[0,0]",
                {.parameters = {{"tensor_regex", "w"}, {"max_threshold", "None"}}, .log = log});
  EXPECT_THAT(log->texts.at(0), HasSubstr("neither max_threshold nor min_threshold"));
}

TEST(TensorVariance, single_numbers_and_those_that_are_not_finite_are_skipped) {
  expect_silent(kRule, "w@0=[5]; loss@0=3; m@0=[[7]]; x@0=[-1,1]", {.parameters = kBand});
  expect_silent(kRule, "w@0=[nan,1]; x@0=[inf,1]; y@0=[-inf,inf]", {.parameters = kBand});
  // All elements equal, unlike a single one.
  expect_fires(kRule, "w@3=[5,5]", 3, {.parameters = kBand});
}

TEST(TensorVariance, the_variance_or_the_standard_deviation_is_enough) {
  expect_fires(kRule, "w~variance@4=16", 4, {.parameters = kBand});
  expect_fires(kRule, "w~std@4=4", 4, {.parameters = kBand});
  expect_silent(kRule, "w~std@4=1", {.parameters = kBand});
  expect_fires(kRule, "w~variance@4=0", 4, {.parameters = kBand});
  expect_silent(kRule, "w~variance@4=0; w~shape@4=[1]", {.parameters = kBand});
  EXPECT_THAT(judge(kRule, "w~mean@4=0", {.parameters = kBand}).missing.value_or(""),
              HasSubstr("the values or variance of tensors"));
}

TEST(TensorVariance, workers_are_judged_as_told) {
  Json all = kBand;
  all["workers"] = "all";
  const std::string run = "w@0=[-1,1]; w@0#worker_1=[-4,4]";
  expect_silent(kRule, run, {.parameters = kBand});
  EXPECT_EQ(judge(kRule, run, {.parameters = all}).hits.at(0).violations.at(0).worker, "worker_1");
}

TEST(TensorVariance, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"max_threshold", 1}}),
              HasSubstr("TensorVariance needs collection_names or tensor_regex"));
  Json crossed = kBand;
  crossed["min_threshold"] = 11;
  EXPECT_THAT(creation_error(kRule, crossed), HasSubstr("min_threshold of TensorVariance is 11, "
                                                        "above max_threshold, which is 10."));
  crossed["min_threshold"] = "tiny";
  EXPECT_THAT(creation_error(kRule, crossed), HasSubstr("is 'tiny'; it must be a number."));
  crossed["min_threshold"] = -1;
  EXPECT_THAT(creation_error(kRule, crossed), HasSubstr("at least 0"));
}

}  // namespace
}  // namespace smd::rules
