#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "UnchangedTensor";
const Json kT = {{"tensor_regex", "t"}};

Json with(std::string_view name, Json value) {
  Json out = kT;
  out[std::string(name)] = std::move(value);
  return out;
}

// Keeps what was logged.
class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

TEST(UnchangedTensor, fires_when_three_saved_steps_are_the_same) {
  expect_fires(kRule, "t@0=[1,2]; t@4=[1,2.000001]; t@9=[1,2]", 9, {.parameters = kT});
  expect_fires(kRule, "t@0,1,2=1,1,1", 2, {.parameters = kT});
}

TEST(UnchangedTensor, is_silent_when_the_last_one_moves) {
  expect_silent(kRule, "t@0=[1]; t@4=[1]; t@9=[1.1]", {.parameters = kT});
}

TEST(UnchangedTensor, every_step_of_the_window_counts) {
  // 2 is close to 4 and not to 0.
  expect_silent(kRule, "t@0=[1]; t@2=[1.000009]; t@4=[1.000018]", {.parameters = kT});
  expect_fires(kRule, "t@0=[1]; t@2=[1.000009]; t@4=[1.000018]", 2,
               {.parameters = with("num_steps", 2)});
  const Verdict verdict = judge(kRule, "t@0,1,2,3,4,5,6=1,2,2,2,2,3,3", {.parameters = kT});
  EXPECT_THAT(verdict.steps(), ElementsAre(3, 4));
}

TEST(UnchangedTensor, too_few_steps_are_not_judged) {
  const Verdict verdict = judge(kRule, "t@0,1=1,1", {.parameters = kT});
  EXPECT_TRUE(verdict.hits.empty());
  EXPECT_THAT(verdict.missing.value_or(""), HasSubstr("needs a tensor at 3 steps of one mode"));
  expect_fires(kRule, "t@0,1=1,1", 1, {.parameters = with("num_steps", "2")});
  // Steps without the tensor are no datapoints.
  EXPECT_THAT(judge(kRule, "t@0,1=1,1; x@2,3=1,1; t@7=1", {.parameters = kT}).steps(),
              ElementsAre(7));
}

TEST(UnchangedTensor, the_older_value_is_the_reference) {
  // |0.1| <= 0 + 0.1 * |reference|: only for the larger reference.
  const auto options = [](const char* atol) {
    return CaseOptions{
        .parameters = {{"tensor_regex", "t"}, {"num_steps", 2}, {"rtol", 0.5}, {"atol", atol}}};
  };
  expect_fires(kRule, "t@0=[2]; t@1=[1]", 1, options("0"));
  expect_silent(kRule, "t@0=[1]; t@1=[2]", options("0"));
  expect_fires(kRule, "t@0=[1]; t@1=[2]", 1, options("0.5"));
}

TEST(UnchangedTensor, odd_numbers) {
  expect_silent(kRule, "t@0,1,2=nan,nan,nan", {.parameters = kT});
  expect_fires(kRule, "t@0,1,2=nan,nan,nan", 2, {.parameters = with("equal_nan", "True")});
  expect_fires(kRule, "t@0=[inf,1]; t@1=[inf,1]; t@2=[inf,1]", 2, {.parameters = kT});
  expect_silent(kRule, "t@0=[inf]; t@1=[inf]; t@2=[-inf]", {.parameters = kT});
  expect_silent(kRule, "t@0=[inf]; t@1=[inf]; t@2=[1]", {.parameters = kT});
  expect_fires(kRule, "t@0=[0]; t@1=[-0.0]; t@2=[0]", 2, {.parameters = kT});
}

TEST(UnchangedTensor, another_shape_is_a_change) {
  expect_silent(kRule, "t@0=[1,1]; t@1=[[1],[1]]; t@2=[1,1]", {.parameters = kT});
  expect_silent(kRule, "t@0=[1,1]; t@1=[1,1]; t@2=[1,1,1]", {.parameters = kT});
}

TEST(UnchangedTensor, integers_are_compared_exactly_unless_a_tolerance_is_given) {
  const std::string counter =
      "t@0:int64=[1000000]; t@1:int64=[1000001]; t@2:int64=[1000002]; t@3:int64=[1000003]";
  expect_silent(kRule, counter, {.parameters = kT});
  expect_fires(kRule, counter, 2, {.parameters = with("rtol", "1e-5")});
  expect_silent(kRule, "t@0:int32=1000000; t@1:int32=1000001; t@2:int32=1000002",
                {.parameters = kT});
  expect_fires(kRule, "t@0:int32=7; t@1:int32=7; t@2:int32=7", 2, {.parameters = kT});
}

TEST(UnchangedTensor, modes_and_workers_have_windows_of_their_own) {
  expect_silent(kRule, "t@T0=1; t@E1=1; t@T2=1; t@E3=1; t@T4=2; t@E5=2", {.parameters = kT});
  expect_fires(kRule, "t@T0=1; t@E1=5; t@T2=1; t@E3=6; t@T4=1", 4, {.parameters = kT});
  const std::string run = "t@0,1,2=1,2,3; t@0#worker_1=5; t@1#worker_1=5; t@2#worker_1=5";
  expect_silent(kRule, run, {.parameters = kT});
  const Verdict verdict = judge(kRule, run, {.parameters = with("workers", "all")});
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).worker, "worker_1");
  // The first worker that saved it counts, whichever it is.
  expect_fires(kRule, "t@0=1; x@0#worker_1=1; x@1=1; t@1#worker_1=1; t@2=1; x@2#worker_1=1", 2,
               {.parameters = kT});
}

TEST(UnchangedTensor, tells_the_window_and_the_largest_difference) {
  const Verdict verdict =
      judge(kRule, "t@0=[1,2]; t@4=[1,2.0000009]; t@9=[1,2.0000001]", {.parameters = kT});
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.metric, "unchanged_steps");
  EXPECT_EQ(hit.value, 3);
  EXPECT_EQ(hit.context["steps"], Json::array({0, 4, 9}));
  EXPECT_NEAR(hit.context["max_abs_difference"].get<double>(), 8e-7, 1e-12);
  EXPECT_EQ(verdict.hits[0].message, "'t' did not change over its last 3 saved steps, 0 to 9.");
}

TEST(UnchangedTensor, reductions_are_not_enough) {
  EXPECT_THAT(
      judge(kRule, "t~mean@0=1; t~mean@1=1; t~mean@2=1", {.parameters = kT}).missing.value_or(""),
      HasSubstr("needs the values of tensors"));
}

TEST(UnchangedTensor, what_does_not_fit_into_memory_is_not_judged_and_told) {
  // 100,000 doubles take 0.76 MiB, and two steps of them are more than 1 MiB.
  std::string ones = "[1";
  for (int i = 1; i < 100000; ++i) ones += ",1";
  ones += "]";
  const std::string run = "t@0=" + ones + "; t@1=" + ones + "; t@2=" + ones;
  const auto log = std::make_shared<Messages>();
  const Verdict verdict = judge(kRule, run, {.parameters = with("max_memory_mib", 1), .log = log});
  EXPECT_TRUE(verdict.hits.empty());
  EXPECT_THAT(log->texts, ElementsAre(HasSubstr("does not judge 't' and perhaps others")));
  EXPECT_EQ(judge(kRule, run, {.parameters = with("max_memory_mib", 2)}).hits.size(), 1u);
}

TEST(UnchangedTensor, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {}),
              HasSubstr("UnchangedTensor needs collection_names or tensor_regex"));
  EXPECT_THAT(creation_error(kRule, with("num_steps", 1)), HasSubstr("at least 2"));
  EXPECT_THAT(creation_error(kRule, with("rtol", -1)), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, with("atol", "x")), HasSubstr("a number"));
  EXPECT_THAT(creation_error(kRule, with("equal_nan", "maybe")), HasSubstr("true or false"));
}

}  // namespace
}  // namespace smd::rules
