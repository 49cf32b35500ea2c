#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "DeadRelu";

// Keeps what was logged.
class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

TEST(DeadRelu, fires_when_most_units_are_dead) {
  expect_fires(kRule, "relu_output_0@2=[[0,0,1],[0,0,1],[0,0,1],[0,0,1]]", 2);
}

TEST(DeadRelu, is_silent_when_half_of_them_are) {
  expect_silent(kRule, "relu_output_0@2=[[0,0,1,2],[0,0,1,2],[0,0,1,2],[0,0,1,2]]");
}

TEST(DeadRelu, tells_units_and_their_indices) {
  const Verdict verdict = judge(kRule, "relu_output_0@2=[[0,1,0],[0,0,0],[0,0,0],[0,0,0]]");
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "dead_percent");
  EXPECT_NEAR(hit.value, 66.67, 0.01);
  EXPECT_EQ(hit.op, Op::above);
  EXPECT_EQ(hit.threshold, 50);
  EXPECT_EQ(hit.context["units"], 3);
  EXPECT_EQ(hit.context["dead_units"], 2);
  EXPECT_EQ(hit.context["samples"], 4);
  EXPECT_EQ(hit.context["unit_indices"], Json::array({0, 2}));
  EXPECT_THAT(verdict.hits[0].message, HasSubstr("2 of the 3 units of 'relu_output_0'"));
}

TEST(DeadRelu, at_most_sixteen_units_are_listed) {
  std::string zeros = "[0";
  for (int i = 1; i < 40; ++i) zeros += ",0";
  zeros += "]";
  const Verdict verdict = judge(kRule, "relu_output_0@0=[" + zeros + "," + zeros + "]");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["unit_indices"].size(), 16u);
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["dead_units"], 40);
}

TEST(DeadRelu, only_numbers_above_zero_are_active) {
  expect_fires(kRule, "relu_output@0=[[-1,nan,1],[-0.0,nan,1]]", 0);
  expect_silent(kRule, "relu_output@0=[[inf,1e-40,-1],[0,0,-1]]");
  expect_silent(kRule, "relu_output@0:float16=[[1,5.9604644775390625e-08]]");
}

TEST(DeadRelu, a_few_active_samples_are_not_enough) {
  // 1 of 100 is 1 %, which is not below 1 %; 1 of 101 is.
  const auto batch = [](int samples) {
    std::string out = "relu_output@0=[[1]";
    for (int i = 1; i < samples; ++i) out += ",[0]";
    return out + "]";
  };
  expect_silent(kRule, batch(100));
  expect_fires(kRule, batch(101), 0);
  expect_silent(kRule, batch(101), {.parameters = {{"threshold_inactivity", "0.5"}}});
}

TEST(DeadRelu, thresholds_are_percentages) {
  const std::string run = "relu_output@0=[[0,1,1,1],[0,1,1,1]]";
  expect_silent(kRule, run);
  expect_fires(kRule, run, 0, {.parameters = {{"threshold_layer", 20}}});
  expect_silent(kRule, run, {.parameters = {{"threshold_layer", 25}}});
  EXPECT_THAT(creation_error(kRule, {{"threshold_layer", 101}}), HasSubstr("at most 100"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_inactivity", -1}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"unit_axis", "channels"}}), HasSubstr("a whole number"));
}

TEST(DeadRelu, elements_of_a_vector_are_units) {
  expect_fires(kRule, "relu_output@0=[0,0,1]", 0);
  expect_silent(kRule, "relu_output@0=[0,1]");
  expect_fires(kRule, "relu_output@0=0", 0);
  expect_silent(kRule, "relu_output@0=1; relu_output_1@0=[]");
}

TEST(DeadRelu, channels_are_units_on_request) {
  // Two samples, two channels, two places: each place is dead in more than half of the cases, and
  // no channel is.
  const std::string run = "relu_output@0=[[[1,0],[0,1]],[[0,0],[0,0]]]";
  expect_silent(kRule, run);
  expect_fires(kRule, run, 0, {.parameters = {{"threshold_layer", 49}}});
  expect_silent(kRule, run, {.parameters = {{"threshold_layer", 49}, {"unit_axis", 1}}});
  // The second channel is dead.
  const std::string dead = "relu_output@0=[[[1,0],[0,0]],[[0,0],[0,0]]]";
  const Verdict verdict =
      judge(kRule, dead, {.parameters = {{"threshold_layer", 49}, {"unit_axis", "1"}}});
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["unit_indices"], Json::array({1}));
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["samples"], 4);
  const Verdict last =
      judge(kRule, dead, {.parameters = {{"threshold_layer", 49}, {"unit_axis", -1}}});
  EXPECT_EQ(last.hits.at(0).violations.at(0).context["unit_indices"], Json::array({1}));
  const auto log = std::make_shared<Messages>();
  EXPECT_TRUE(judge(kRule, "relu_output@0=[0]", {.parameters = {{"unit_axis", 1}}, .log = log})
                  .hits.empty());
  EXPECT_THAT(log->texts, ElementsAre(HasSubstr("'relu_output', which has no axis 1")));
}

TEST(DeadRelu, names_of_classes_match_unless_compat) {
  const std::string run = "net_ReLU_output_0@3=[[0],[0]]; net_relu_output_0@5=[[0],[0]]";
  expect_fires(kRule, run, 3);
  expect_fires(kRule, run, 5, {.parameters = {{"compat", "true"}}});
  expect_fires(kRule, "act@1=[[0]]", 1, {.parameters = {{"tensor_regex", "act"}, {"compat", 1}}});
  EXPECT_THAT(judge(kRule, "act@1=[[0]]").missing.value_or(""),
              HasSubstr("needs outputs of ReLUs (names with '.*relu_output|.*ReLU_output')"));
}

TEST(DeadRelu, reductions_are_not_enough) {
  EXPECT_THAT(judge(kRule, "relu_output_0~max@1=0").missing.value_or(""),
              HasSubstr("needs the values of outputs of ReLUs"));
}

TEST(DeadRelu, workers_are_judged_as_told) {
  const std::string run = "relu_output@0=[[1]]; relu_output@0#worker_1=[[0]]";
  expect_silent(kRule, run);
  const Verdict verdict = judge(kRule, run, {.parameters = {{"workers", "all"}}});
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).worker, "worker_1");
}

}  // namespace
}  // namespace smd::rules
