#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "LossNotDecreasing";

// Keeps what was logged.
class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

TEST(LossNotDecreasing, fires_when_the_loss_has_not_fallen) {
  expect_fires(kRule, "loss@0,4,8,12,16=0.30,0.33,0.31,0.30,0.28", 12);
}

TEST(LossNotDecreasing, is_silent_while_the_loss_falls) {
  expect_silent(kRule, "loss@0,4,8,12=1.0,1.2,1.1,0.9");
}

TEST(LossNotDecreasing, forgives_a_small_rise_and_no_more) {
  expect_silent(kRule, "loss@0,4,8,12=1.0,1.2,1.1,1.04");
  expect_fires(kRule, "loss@0,4,8,12=1.0,1.2,1.1,1.06", 12);
  expect_silent(kRule, "loss@0,12=1.0,1.5", {.parameters = {{"increase_threshold_percent", "60"}}});
  expect_fires(kRule, "loss@0,12=1.0,0.9995", 12);
  expect_silent(kRule, "loss@0,12=1.0,0.9995", {.parameters = {{"diff_percent", 0.01}}});
}

TEST(LossNotDecreasing, checks_are_num_steps_apart_with_the_newest_partner_that_is_far_enough) {
  // Saved every 3 steps: due at 12, then at 24 (12 apart), each against 12 steps earlier.
  std::string steps = "0";
  std::string values = "1";
  for (int i = 3; i <= 36; i += 3) {
    steps += "," + std::to_string(i);
    values += ",1";
  }
  const Verdict verdict = judge(kRule, "loss@" + steps + "=" + values);
  EXPECT_THAT(verdict.steps(), ElementsAre(12, 24, 36));
  EXPECT_EQ(verdict.hits[1].violations[0].context["step_before"], 12);
  // The guide's example: a check at 21 uses 9, and the next one is at 33.
  const Verdict guide = judge(kRule, "loss@9,12,15,18,21,24,27,30,33=1,1,1,1,1,1,1,1,1");
  EXPECT_THAT(guide.steps(), ElementsAre(21, 33));
  EXPECT_EQ(guide.hits[0].violations[0].context["step_before"], 9);
}

TEST(LossNotDecreasing, losses_that_are_no_numbers) {
  expect_fires(kRule, "loss@0,10=1,nan", 10);
  expect_fires(kRule, "loss@0,10=1,inf", 10);
  expect_silent(kRule, "loss@0,10=nan,1");
  EXPECT_THAT(judge(kRule, "loss@0,10=1,-nan").hits.at(0).message, HasSubstr("NaN at step 10"));
  expect_fires(kRule, "loss@0,10=0,0", 10);
  expect_fires(kRule, "loss@0,10=0,0.001", 10);
  expect_silent(kRule, "loss@0,10=-1,-2");
  expect_fires(kRule, "loss@0,10=-2,-1", 10);
}

TEST(LossNotDecreasing, the_first_of_eval_train_and_global_is_judged) {
  const std::string train = "loss@T0/0,T10/10=1,1";
  expect_fires(kRule, train, 10);
  // EVAL losses fall, and from step 1 on they are what counts.
  expect_silent(kRule, "loss@T0/0=1;loss@E1/0=1;loss@T11/11=1;loss@E12/10=0.5");
  expect_fires(kRule, "loss@T0/0=1;loss@E1/0=1;loss@T11/11=1;loss@E12/10=0.5", 11,
               {.parameters = {{"mode", "TRAIN"}}});
  // With GLOBAL all modes are one series.
  expect_fires(kRule, "loss@T0/0=1;loss@E12/0=1", 12, {.parameters = {{"mode", "GLOBAL"}}});
  EXPECT_THAT(creation_error(kRule, {{"mode", "TRIAN"}}), HasSubstr("TRAIN"));
}

TEST(LossNotDecreasing, the_mean_of_several_numbers_is_taken_with_one_warning) {
  const auto log = std::make_shared<Messages>();
  const Verdict verdict = judge(kRule, "loss@0=[1,3];loss@10=[2,2];loss@20=[1,1]", {.log = log});
  EXPECT_THAT(verdict.steps(), ElementsAre(10));
  EXPECT_THAT(log->texts, ElementsAre(HasSubstr("mean of 'loss'")));
}

TEST(LossNotDecreasing, losses_are_found_by_collection_and_pattern) {
  expect_fires(kRule, "objective@0,10=1,1", 10, {.parameters = {{"tensor_regex", "objective"}}});
  EXPECT_THAT(judge(kRule, "objective@0,10=1,1").missing.value_or(""), HasSubstr("losses"));
  expect_silent(
      kRule, "loss@0,10=1,1;objective@0,10=1,0.5",
      {.parameters = {{"tensor_regex", "objective"}, {"use_losses_collection", "False"}}});
  EXPECT_THAT(creation_error(kRule, {{"use_losses_collection", false}}),
              HasSubstr("needs collection_names"));
}

TEST(LossNotDecreasing, percentages_lie_between_0_and_100) {
  EXPECT_THAT(creation_error(kRule, {{"diff_percent", 100}}),
              HasSubstr("it must be above 0 and below 100."));
  EXPECT_THAT(creation_error(kRule, {{"num_steps", 0}}), HasSubstr("it must be at least 1."));
  EXPECT_THAT(creation_error(kRule, {{"num_steps", "1.5"}}), HasSubstr("a whole number"));
}

}  // namespace
}  // namespace smd::rules
