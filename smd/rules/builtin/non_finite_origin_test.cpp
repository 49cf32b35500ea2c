#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "NonFiniteOrigin";

TEST(NonFiniteOrigin, names_the_first_tensor_of_the_step_and_what_it_reached) {
  const std::string run =
      "z_in@0=[1,1]; y_log@0=[1,1]; b_out@0=[1,1]; loss@0=1; gradient/a@0=[1,1];"
      "z_in@1=[2,1]; y_log@1=[nan,1]; b_out@1=[nan,1]; loss@1=nan; gradient/a@1=[nan,1]";
  expect_fires(kRule, run, 1);
  for (const bool packed : {false, true}) {
    const Verdict verdict = judge(kRule, run, {.packed = packed});
    ASSERT_EQ(verdict.hits.size(), 1u);
    const Violation& hit = verdict.hits[0].violations.at(0);
    EXPECT_EQ(hit.tensor, "y_log");
    EXPECT_EQ(hit.context["finite_before"], "z_in");
    EXPECT_EQ(hit.context["abs_max_before"], 2);
    EXPECT_EQ(hit.context["reached"], Json::parse(R"(["b_out", "loss", "gradient/a"])"));
    EXPECT_EQ(hit.context["kind"], "invalid operation");
    EXPECT_EQ(hit.context["first_index"], 0);
    EXPECT_EQ(hit.context["last_finite_step"], 0);
    EXPECT_THAT(verdict.hits[0].message, HasSubstr("'y_log' is the first tensor with NaN"));
  }
}

TEST(NonFiniteOrigin, the_loss_comes_after_the_forward_pass_though_it_was_saved_in_earlier_steps) {
  // Names of a packed run are numbered by their first step, which has the loss alone.
  const std::string run = "loss@0=1; act~abs_max@2=inf; loss@2=nan; gradient/w~abs_max@2=nan";
  for (const bool packed : {false, true}) {
    const Verdict verdict = judge(kRule, run, {.packed = packed});
    EXPECT_EQ(verdict.hits.at(0).violations.at(0).tensor, "act");
    EXPECT_EQ(verdict.hits.at(0).violations.at(0).context["reached_count"], 2);
  }
}

TEST(NonFiniteOrigin, metrics_are_not_blamed) {
  const Verdict verdict = judge(kRule, "grad_norm@0=nan; out@0=[1,1]; loss@0=nan");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).tensor, "loss");
}

TEST(NonFiniteOrigin, shows_the_climb_before_an_overflow) {
  const std::string run =
      "x@0=[1,1]; x@1=[10,1]; x@2=[100,1]; x@3=[1000,1]; x@4=[10000,1]; x@5=[20000,1];"
      "x@6=[inf,7]; loss@6=nan";
  const Verdict verdict = judge(kRule, run, {.parameters = {{"history", 3}}});
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.context["kind"], "overflow");
  ASSERT_EQ(hit.context["climb"].size(), 3u);
  EXPECT_EQ(hit.context["climb"][0]["step"], 3);
  EXPECT_EQ(hit.context["climb"][2]["abs_max"], 20000);
  EXPECT_EQ(hit.context["largest_finite"], 7);
  const Verdict half = judge(kRule, "x@0:float16=[60000,1]; x@1:float16=[inf,1]; loss@1=inf");
  EXPECT_EQ(half.hits.at(0).violations.at(0).context["kind"], "overflow");
}

TEST(NonFiniteOrigin, guesses_the_operation) {
  const auto kind = [](std::string_view run) {
    return judge(kRule, run).hits.at(0).violations.at(0).context["kind"].get<std::string>();
  };
  EXPECT_EQ(kind("a@0=[1,1]; log@0=[-inf,0]; loss@0=inf"), "logarithm");
  EXPECT_EQ(kind("a@0=[1,1]; ratio@0=[inf,0]; loss@0=nan"), "division");
  EXPECT_EQ(kind("a@0=[1,1]; weight@0=[nan,1]; out@0=[nan,1]; loss@0=nan"), "update");
  EXPECT_EQ(kind("a~abs_max@0=1; b~abs_max@0=nan; loss@0=nan"), "invalid operation");
}

TEST(NonFiniteOrigin, weights_saved_after_the_update_come_last) {
  const Verdict verdict =
      judge(kRule, "out@0=[1,1]; loss@0=1; gradient/weight@0=[nan,1]; weight@0=[nan,1]");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).tensor, "gradient/weight");
}

TEST(NonFiniteOrigin, masks_with_minus_infinity_are_no_fault) {
  expect_silent(kRule, "mask@0=[-inf,0]; scores@0=[-inf,1]; probs@0=[0,1]; loss@0=1");
  expect_silent(kRule, "mask~min@0=-inf; mask~max@0=0; probs@0=[0,1]; loss@0=1");
  expect_fires(kRule, "out@0=[1,1]; loss@0=-inf", 0);
  expect_fires(kRule, "weight@0=[-inf,1]; out@0=[1,1]", 0);
  // Nothing else is made harmless by finite tensors after it.
  expect_fires(kRule, "x@0=[nan,1]; y@0=[1,1]; loss@0=1", 0);
  expect_fires(kRule, "x@0=[inf,1]; y@0=[1,1]; loss@0=1", 0);
  // And not blamed for another's.
  const Verdict verdict =
      judge(kRule,
            "mask@0=[-inf,0]; probs@0=[0,1]; out@0=[1,1]; mask@1=[-inf,0]; probs@1=[0,1];"
            "out@1=[nan,1]; loss@1=nan");
  EXPECT_THAT(verdict.steps(), ElementsAre(1));
  EXPECT_EQ(verdict.hits[0].violations[0].tensor, "out");
}

TEST(NonFiniteOrigin, leaves_of_trees_are_no_fault) {
  expect_silent(kRule, "trees/Split@0=[1,nan]; x@0=[1,1]");
}

TEST(NonFiniteOrigin, gradients_may_overflow_while_a_loss_scale_is_searched_for) {
  const std::string scaled =
      "loss@0,1,2,3=1,1,1,1; gradient/w@0=[inf]; gradient/w@1=[inf]; gradient/w@2=[1];"
      "gradient/w@3=[1]";
  expect_silent(kRule, scaled);
  expect_fires(kRule, scaled, 0, {.parameters = {{"gradient_patience", 1}}});
  // What began in the gradients and reached the forward pass of the next step.
  expect_fires(kRule, "loss@0=1; gradient/w@0=[nan]; out@1=[nan,1]; loss@1=nan", 0);
  const Verdict last = judge(kRule, "loss@0=1; gradient/w@0=[inf]");
  EXPECT_EQ(last.finding->severity, Severity::info);
}

TEST(NonFiniteOrigin, fires_once_until_everything_is_finite_again) {
  EXPECT_THAT(judge(kRule, "x@0=[nan]; x@1=[nan]; x@2=[1]; x@3=[nan]").steps(), ElementsAre(0, 3));
}

TEST(NonFiniteOrigin, every_worker_is_judged) {
  const Verdict verdict = judge(kRule, "x@1=[1]; x@1#worker_1=[nan]");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).worker, "worker_1");
  expect_silent(kRule, "x@1=[1]; x@1#worker_1=[nan]", {.parameters = {{"workers", "first"}}});
}

TEST(NonFiniteOrigin, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"history", 0}}), HasSubstr("history of NonFiniteOrigin"));
  EXPECT_THAT(creation_error(kRule, {{"gradient_patience", -1}}), HasSubstr("at least 0"));
}

}  // namespace
}  // namespace smd::rules
