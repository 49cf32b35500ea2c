#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "SaturatedActivation";

// Keeps what was logged.
class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

TEST(SaturatedActivation, fires_when_all_units_are_saturated) {
  expect_fires(kRule, "n/tanh_input_0@3=[[10,-10],[10,-10],[10,-10],[10,-10]]", 3);
}

TEST(SaturatedActivation, is_silent_when_half_of_them_are) {
  expect_silent(kRule, "n/tanh_input_0@3=[[10,0.5],[10,0.5],[10,0.5],[10,0.5]]");
}

TEST(SaturatedActivation, tells_units_and_both_ends) {
  const Verdict verdict = judge(kRule, "n/tanh_input_0@3=[[10,-10,10],[10,10,0],[11,nan,10]]");
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "saturated_percent");
  EXPECT_NEAR(hit.value, 66.67, 0.01);
  EXPECT_EQ(hit.op, Op::above);
  EXPECT_EQ(hit.threshold, 50);
  EXPECT_EQ(hit.context["saturated_units"], 2);
  EXPECT_EQ(hit.context["units"], 3);
  EXPECT_EQ(hit.context["samples"], 3);
  EXPECT_EQ(hit.context["low_count"], 1);
  EXPECT_EQ(hit.context["high_count"], 6);
  EXPECT_EQ(hit.context["low_bound"], -9.4999);
  EXPECT_THAT(verdict.hits[0].message,
              HasSubstr("2 of the 3 units behind 'n/tanh_input_0' are in the flat part of tanh."));
}

TEST(SaturatedActivation, the_name_tells_the_kind) {
  // 10 is far out for tanh and not for the sigmoid, whose bounds are not symmetric.
  expect_silent(kRule, "sigmoid_input@0=[[10],[10]]");
  expect_fires(kRule, "sigmoid_input@0=[[17],[17]]", 0);
  expect_silent(kRule, "sigmoid_input@0=[[-17],[-22.9]]");
  expect_fires(kRule, "sigmoid_input@0=[[-23],[-24]]", 0);
  expect_fires(kRule, "Net_Tanh_0_input@0=[[10]]", 0, {.parameters = {{"tensor_regex", "Tanh"}}});
  // The innermost name counts.
  expect_silent(kRule, "tanh_block/sigmoid_input@0=[[10]]");
  expect_fires(kRule, "sigmoid_block/tanh_input@0=[[10]]", 0);
}

TEST(SaturatedActivation, other_names_are_skipped_with_one_warning) {
  const auto log = std::make_shared<Messages>();
  const Verdict verdict = judge(kRule, "weight_a@0=[[99]]; weight_b@1=[[99]]",
                                {.parameters = {{"collection_names", "weights"}}, .log = log});
  EXPECT_TRUE(verdict.hits.empty());
  EXPECT_THAT(log->texts, ElementsAre(HasSubstr("'weight_a', whose name tells neither")));
}

TEST(SaturatedActivation, a_bound_and_nan_are_not_active) {
  expect_fires(kRule, "tanh_input@0=[[9.4999]]", 0);
  expect_fires(kRule, "tanh_input@0=[[-9.4999]]", 0);
  expect_silent(kRule, "tanh_input@0=[[9.4998]]");
  expect_fires(kRule, "tanh_input@0=[[nan]]", 0);
}

TEST(SaturatedActivation, few_active_samples_save_a_unit) {
  const auto batch = [](int samples) {
    std::string out = "tanh_input@0=[[0]";
    for (int i = 1; i < samples; ++i) out += ",[20]";
    return out + "]";
  };
  expect_silent(kRule, batch(100));
  expect_fires(kRule, batch(101), 0);
  expect_silent(kRule, batch(101), {.parameters = {{"threshold_inactivity", 0.5}}});
  expect_fires(kRule, batch(50), 0, {.parameters = {{"threshold_inactivity", "2.5"}}});
}

TEST(SaturatedActivation, vectors_and_channels) {
  expect_fires(kRule, "tanh_input@0=[20,20,0]", 0);
  expect_silent(kRule, "tanh_input@0=[20,0]; tanh_input_1@0=[]");
  // Each channel is active at one of its places.
  const std::string run = "tanh_input@0=[[[0,20,20],[20,20,0]]]";
  expect_fires(kRule, run, 0);
  expect_silent(kRule, run, {.parameters = {{"unit_axis", 1}}});
}

TEST(SaturatedActivation, bounds_can_be_given_one_by_one_or_as_pairs) {
  const std::string run = "tanh_input@0=[[5]]";
  expect_silent(kRule, run);
  expect_fires(kRule, run, 0, {.parameters = {{"threshold_tanh_max", "5"}}});
  expect_fires(kRule, run, 0, {.parameters = {{"threshold_tanh", "-5, 5"}}});
  expect_fires(kRule, "tanh_input@0=[[-5]]", 0, {.parameters = {{"threshold_tanh", {-5, 6}}}});
  expect_fires(kRule, "sigmoid_input@0=[[-5]]", 0, {.parameters = {{"threshold_sigmoid", "-5,5"}}});
  EXPECT_THAT(creation_error(kRule, {{"threshold_tanh", "5"}}), HasSubstr("has 1 numbers"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_tanh", "5,-5"}}),
              HasSubstr("The lower bound of threshold_tanh of SaturatedActivation is 5"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_sigmoid_min", 20}}), HasSubstr("below the upper"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_tanh", "-5,5"}, {"threshold_tanh_min", -4}}),
              HasSubstr("threshold_tanh and threshold_tanh_min of SaturatedActivation are both"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_tanh", "a,b"}}), HasSubstr("a list of numbers"));
}

TEST(SaturatedActivation, needs_the_values_of_all_workers_it_judges) {
  EXPECT_THAT(judge(kRule, "x@0=[1]").missing.value_or(""),
              HasSubstr("needs inputs of tanh and sigmoid (names with"));
  EXPECT_THAT(judge(kRule, "tanh_input~max@0=20; tanh_input~min@0=20").missing.value_or(""),
              HasSubstr("needs the values of"));
  const std::string run = "tanh_input@0=[[1]]; tanh_input@0#worker_1=[[20]]";
  expect_silent(kRule, run);
  EXPECT_EQ(
      judge(kRule, run, {.parameters = {{"workers", "all"}}}).hits.at(0).violations.at(0).worker,
      "worker_1");
}

}  // namespace
}  // namespace smd::rules
