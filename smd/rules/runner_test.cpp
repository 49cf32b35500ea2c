#include "smd/rules/runner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/rules/diagnosis.h"
#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Fails at the second step it sees.
class Failing final : public Rule {
 public:
  std::vector<Selection*> selections() override { return {}; }
  Status observe(const StepView& step, Hits&) override {
    if (++steps_ < 2) return {};
    return Error{ErrorCode::internal, fmt::format("Broken at {}.", step.info().step)};
  }

 private:
  int steps_ = 0;
};

const RuleKind kFailing = {.name = "Failing", .create = [](const Parameters&, const RuleContext&) {
                             return make_rule<Failing>();
                           }};

// Fires when the run is over, about the first step, and when nothing came for a minute.
class Late final : public Rule {
 public:
  std::vector<Selection*> selections() override { return {}; }
  Status observe(const StepView& step, Hits&) override {
    if (!first_) first_ = step.info();
    return {};
  }
  Status finish(const RunView& run, Hits& hits) override {
    hits.set_step(*first_, 0);
    hits.add(run.tensor(0), "count", 1, Op::above, 0);
    return {};
  }
  Status tick(const Progress& progress, Hits& hits) override {
    if (progress.now_secs - progress.newest_secs >= 60) {
      hits.add("", "age_secs", progress.now_secs - progress.newest_secs, Op::above, 60);
    }
    return {};
  }

 private:
  std::optional<StepInfo> first_;
};

const RuleKind kLate = {.name = "Late", .create = [](const Parameters&, const RuleContext&) {
                          return make_rule<Late>();
                        }};

const RuleKind& kind(std::string_view name) { return **find_rule(name); }

TEST(RuleKind, names_are_found_in_any_spelling) {
  for (const char* name : {"VanishingGradient", "vanishinggradient", "vanishing_gradient"}) {
    ASSERT_TRUE(find_rule(name).ok()) << name;
    EXPECT_EQ(kind(name).name, "VanishingGradient");
  }
  const auto wrong = find_rule("VanishinGradients");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::not_found);
  EXPECT_THAT(wrong.error().message, HasSubstr("Did you mean 'VanishingGradient'?"));
}

TEST(RuleKind, every_rule_says_what_it_is_and_accepts_its_own_defaults) {
  for (const RuleKind* one : rule_kinds()) {
    for (std::string_view text : {one->summary, one->sees, one->why, one->fix}) {
      EXPECT_TRUE(text.ends_with('.')) << one->name << ": " << text;
    }
    for (const ParameterSpec& parameter : one->parameters) {
      EXPECT_TRUE(parameter.help.ends_with('.')) << one->name << "." << parameter.name;
    }
    const auto parameters = Parameters::parse(one->name, one->parameters, nullptr);
    ASSERT_TRUE(parameters.ok()) << parameters.error().message;
    const auto made = one->create(*parameters, {});
    if (!made.ok()) {
      EXPECT_EQ(made.error().code, ErrorCode::not_found) << made.error().message;
    }
  }
}

TEST(RuleKind, snake_names_are_those_of_the_files) {
  EXPECT_EQ(snake_name(kind("LossNotDecreasing")), "loss_not_decreasing");
  EXPECT_EQ(snake_name({.name = "NLPSequenceRatio"}), "nlp_sequence_ratio");
  EXPECT_EQ(snake_name({.name = "StalledTrainingRule"}), "stalled_training_rule");
}

TEST(Runner, a_rule_that_fails_does_not_harm_the_others) {
  Runner runner({});
  ASSERT_TRUE(runner.add(kFailing, nullptr).ok());
  ASSERT_TRUE(runner.add(kind("ExplodingTensor"), nullptr).ok());
  TrialFeed feed(RuleCase("x@0=[1]; x@3=[1]; x@5=[nan]").trial());
  ASSERT_TRUE(feed.advance(runner).ok());
  runner.finish();
  EXPECT_EQ(runner.evaluations()[0]->status(), RuleStatus::error);
  EXPECT_EQ(runner.evaluations()[0]->error(), "Broken at 3.");
  EXPECT_EQ(runner.evaluations()[1]->status(), RuleStatus::issues_found);
}

TEST(Runner, a_rule_stops_at_its_first_hit_if_told_so) {
  const auto trial = RuleCase("x@0=[nan]; x@3=[nan]; x@5=[nan]").trial();
  for (const OnFire on_fire : {OnFire::stop, OnFire::keep_going}) {
    Runner runner({.on_fire = on_fire});
    ASSERT_TRUE(runner.add(kind("ExplodingTensor"), nullptr).ok());
    TrialFeed feed(trial);
    ASSERT_TRUE(feed.advance(runner).ok());
    runner.finish();
    EXPECT_EQ(runner.evaluations()[0]->hit_count(), on_fire == OnFire::stop ? 1u : 3u);
    EXPECT_EQ(runner.evaluations()[0]->status(), RuleStatus::issues_found);
  }
}

TEST(Runner, rules_may_speak_at_the_end_and_in_between) {
  Runner runner({});
  ASSERT_TRUE(runner.add(kLate, nullptr).ok());
  TrialFeed feed(RuleCase("x@2=[1]; x@3=[1]").trial());
  ASSERT_TRUE(feed.advance(runner).ok());
  runner.tick({.now_secs = 59, .newest_step = StepInfo{.step = 3}});
  EXPECT_EQ(runner.evaluations()[0]->hit_count(), 0u);
  runner.tick({.now_secs = 60, .newest_step = StepInfo{.step = 3}});
  EXPECT_EQ(runner.evaluations()[0]->hit_count(), 1u);
  runner.finish();
  EXPECT_EQ(runner.evaluations()[0]->hit_count(), 2u);
  EXPECT_EQ(runner.findings()[0].last_step.step, 2);
}

TEST(Runner, hits_become_one_finding_per_rule) {
  const auto run = "a@0=[1]; b@1=[nan]; a@2=[nan]; b@2=[inf]; gradient/g@2=[0]";
  const auto diagnosis =
      diagnose(RuleCase(run).trial(),
               {.rules = {"VanishingGradient", "ExplodingTensor", "LossNotDecreasing"}});
  ASSERT_TRUE(diagnosis.ok()) << diagnosis.error().message;
  ASSERT_EQ(diagnosis->findings.size(), 2u);
  const Finding& worst = diagnosis->findings[0];
  EXPECT_EQ(worst.kind->name, "ExplodingTensor");
  EXPECT_EQ(worst.hit_count, 2u);
  EXPECT_EQ(worst.violation_count, 3u);
  EXPECT_EQ(worst.first_step.step, 1);
  EXPECT_EQ(worst.last_step.step, 2);
  ASSERT_EQ(worst.tensors.size(), 2u);
  EXPECT_EQ(worst.tensors[0].tensor, "b");
  EXPECT_EQ(worst.tensors[0].hits, 2u);
  EXPECT_EQ(worst.tensors[1].tensor, "a");
  const Json json = worst.to_json();
  EXPECT_EQ(json["severity"], "error");
  EXPECT_EQ(json["evidence"]["violations"][0]["tensor"], "b");
  EXPECT_EQ(json["docs"], "docs/reference/rules/exploding_tensor.md");
  ASSERT_EQ(diagnosis->not_evaluated.size(), 1u);
  EXPECT_EQ(diagnosis->not_evaluated[0].kind->name, "LossNotDecreasing");
}

TEST(Runner, the_record_of_a_hit_has_the_documented_keys) {
  const Verdict verdict = judge("VanishingGradient", "gradient/a@T7/3=[0,0]");
  const Json json = verdict.hits.at(0).to_json({{"threshold", 1e-7}});
  EXPECT_EQ(json["rule"], "VanishingGradient");
  EXPECT_EQ(json["step"], 7);
  EXPECT_EQ(json["mode"], "TRAIN");
  EXPECT_EQ(json["mode_step"], 3);
  EXPECT_EQ(json["parameters"]["threshold"], 1e-7);
  EXPECT_EQ(json["message"], "abs_mean of 'gradient/a' is 0, below 1e-07.");
  EXPECT_EQ(json["violations"][0]["op"], "<");
  EXPECT_EQ(json["violation_count"], 1);
}

TEST(Runner, more_violations_than_allowed_are_counted_only) {
  const Verdict verdict = judge("ExplodingTensor", "a@0=[nan]; b@0=[nan]; c@0=[nan]",
                                {.parameters = {{"max_violations", "2"}}});
  EXPECT_EQ(verdict.hits.at(0).violations.size(), 2u);
  EXPECT_EQ(verdict.hits.at(0).violation_count, 3u);
  EXPECT_EQ(verdict.finding->tensors.size(), 3u);
}

// Fires about every step: information first, then an error, then information again.
class Growing final : public Rule {
 public:
  std::vector<Selection*> selections() override { return {}; }
  Status observe(const StepView& step, Hits& hits) override {
    hits.add("", "step", static_cast<double>(step.info().step), Op::equal, 0);
    hits.set_severity(step.info().step == 1 ? Severity::error : Severity::info);
    return {};
  }
};

TEST(Runner, a_finding_is_as_severe_as_its_worst_hit_which_is_its_evidence) {
  const RuleKind growing = {
      .name = "Growing",
      .severity = Severity::warning,
      .create = [](const Parameters&, const RuleContext&) { return make_rule<Growing>(); }};
  Runner runner({});
  ASSERT_TRUE(runner.add(growing, nullptr).ok());
  ASSERT_TRUE(runner.add(kind("VanishingGradient"), nullptr).ok());
  TrialFeed feed(RuleCase("gradient/x@0,1,2=1,1,0").trial());
  ASSERT_TRUE(feed.advance(runner).ok());
  runner.finish();
  const auto findings = runner.findings();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind->name, "Growing");
  EXPECT_EQ(findings[0].severity, Severity::error);
  EXPECT_EQ(findings[0].to_json()["severity"], "error");
  EXPECT_EQ(findings[0].first_hit.step.step, 1);
  EXPECT_EQ(findings[0].first_step.step, 0);
  EXPECT_EQ(findings[1].severity, Severity::warning);
}

TEST(Runner, hits_are_no_more_severe_than_was_allowed) {
  std::optional<Severity> told;
  Runner runner({.on_hit = [&](const Evaluation&, const Hit& hit) { told = hit.severity; }});
  ASSERT_TRUE(runner.add(**find_rule("ExplodingTensor"), Json(nullptr), Severity::info).ok());
  TrialFeed feed(RuleCase("x@0=[1]; x@5=[nan]").trial());
  ASSERT_TRUE(feed.advance(runner).ok());
  runner.finish();
  EXPECT_EQ(told, Severity::info);
  ASSERT_EQ(runner.findings().size(), 1u);
  EXPECT_EQ(runner.findings()[0].severity, Severity::info);
}

TEST(TrialFeed, the_order_of_a_step_is_that_of_saving_in_every_layout) {
  // A record, numbers of two widths, a scalar and a number about a tensor, in no order by name.
  const std::string run =
      "z@0=[nan,nan]; y~max@0=nan; y~min@0=nan; x@0:float32=nan; w~abs_max@0=nan; v@0=[nan,1];"
      "u@0=nan";
  for (const bool packed : {false, true}) {
    const Verdict verdict = judge("ExplodingTensor", run, {.packed = packed});
    std::string order;
    for (const Violation& hit : verdict.hits.at(0).violations) order += hit.tensor;
    EXPECT_EQ(order, "zyxwvu") << packed;
  }
}

TEST(TrialFeed, a_growing_run_is_read_step_by_step) {
  RuleCase run("x@0=[1]; x@1=[nan]", {.has_ended = false});
  const auto trial = run.trial();
  std::vector<Step> hits;
  Runner runner({.on_hit = [&](const Evaluation&, const Hit& h) { hits.push_back(h.step.step); }});
  ASSERT_TRUE(runner.add(kind("ExplodingTensor"), nullptr).ok());
  TrialFeed feed(trial);
  ASSERT_TRUE(feed.advance(runner).ok());
  EXPECT_THAT(hits, ElementsAre(1));
  EXPECT_EQ(runner.evaluations()[0]->status(), RuleStatus::issues_found);
  run.grow("new@4,6=[1,inf],[1,inf]");
  ASSERT_TRUE(trial->refresh().ok());
  ASSERT_TRUE(feed.advance(runner).ok());
  EXPECT_THAT(hits, ElementsAre(1, 4, 6));
  ASSERT_TRUE(feed.advance(runner).ok());
  EXPECT_EQ(hits.size(), 3u);
  runner.finish();
  EXPECT_EQ(runner.findings()[0].tensors.size(), 2u);
}

TEST(TrialFeed, a_run_that_vanishes_ends_the_evaluation_with_an_error) {
  RuleCase run("x@0=[1,2]; x@1=[nan,1]");
  const auto trial = run.trial();
  for (const auto& file : *run.storage->list("", "")) {
    ASSERT_TRUE(run.storage->remove(file.path).ok());
  }
  Runner runner({});
  ASSERT_TRUE(runner.add(kind("ExplodingTensor"), nullptr).ok());
  TrialFeed feed(trial);
  EXPECT_FALSE(feed.advance(runner).ok());
  runner.stop();
  EXPECT_EQ(runner.evaluations()[0]->status(), RuleStatus::stopped);
}

TEST(TrialFeed, steps_that_a_worker_has_not_reached_wait) {
  RuleCase run("x@0=[1]; x@0#worker_1=[1]; x@1=[nan]", {.has_ended = false});
  const auto trial = run.trial();
  Runner runner({});
  ASSERT_TRUE(runner.add(kind("ExplodingTensor"), nullptr).ok());
  TrialFeed feed(trial);
  ASSERT_TRUE(feed.advance(runner).ok());
  EXPECT_EQ(runner.step_count(), 1u);
  feed.set_incomplete(true);
  ASSERT_TRUE(feed.advance(runner).ok());
  EXPECT_EQ(runner.step_count(), 2u);
  EXPECT_EQ(runner.evaluations()[0]->hit_count(), 1u);
}

}  // namespace
}  // namespace smd::rules
