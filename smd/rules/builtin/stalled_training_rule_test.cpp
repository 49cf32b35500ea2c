#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kRule = "StalledTrainingRule";

// A watcher with a clock of its own, which asks the rule as often as that wants.
class Watcher {
 public:
  explicit Watcher(std::string_view parameters)
      : runner_({.on_hit = [this](const Evaluation&, const Hit& hit) {
          hits.push_back(hit);
          fired_at.push_back(clock_.unix_secs());
        }}) {
    EXPECT_TRUE(runner_.add(**find_rule(kRule), *parse_json(parameters, "")).ok());
    progress_.newest_secs = 0;
  }

  void see_step(Step step, const std::string& worker = "worker_0") {
    progress_.newest_step = StepInfo{.step = step, .mode_step = step};
    progress_.newest_secs = clock_.unix_secs();
    progress_.worker_secs[worker] = clock_.unix_secs();
  }
  void see_end() { progress_.has_ended = true; }
  void poll_until(double secs) {
    const double every = runner_.tick_secs().value_or(1);
    while (next_poll_ <= secs) {
      clock_.advance(next_poll_ - clock_.unix_secs());
      progress_.now_secs = clock_.unix_secs();
      runner_.tick(progress_);
      next_poll_ += every;
    }
    clock_.advance(secs - clock_.unix_secs());
  }
  const Runner& runner() const { return runner_; }

  std::vector<Hit> hits;
  std::vector<double> fired_at;

 private:
  ManualClock clock_{0};
  Runner runner_;
  Progress progress_;
  double next_poll_ = 0;
};

TEST(StalledTrainingRule, fires_a_minute_after_the_newest_step) {
  Watcher watcher(R"({"threshold": "60"})");
  EXPECT_EQ(watcher.runner().tick_secs(), 6);
  watcher.see_step(0);
  watcher.poll_until(30);
  watcher.see_step(1);
  watcher.poll_until(200);
  EXPECT_THAT(watcher.fired_at, ElementsAre(90));
  const Hit& hit = watcher.hits.at(0);
  EXPECT_EQ(hit.step.step, 1);
  EXPECT_EQ(hit.violations.at(0).metric, "silent_secs");
  EXPECT_EQ(hit.violations[0].value, 60);
  EXPECT_EQ(hit.violations[0].op, Op::equal);
  EXPECT_EQ(hit.violations[0].threshold, 60);
  EXPECT_EQ(hit.violations[0].context["newest_step"], 1);
  EXPECT_EQ(hit.violations[0].context["worker_ages_secs"]["worker_0"], 60);
  EXPECT_EQ(hit.message, "No new step for 60 s; the newest is step 1.");
}

TEST(StalledTrainingRule, is_silent_when_data_comes_in_time_and_the_job_ends) {
  Watcher watcher(R"({"threshold": 60})");
  watcher.see_step(0);
  watcher.poll_until(59);
  watcher.see_step(1);
  watcher.poll_until(118);
  watcher.see_step(2);
  watcher.poll_until(130);
  watcher.see_end();
  watcher.poll_until(1000);
  EXPECT_THAT(watcher.fired_at, IsEmpty());
  EXPECT_EQ(watcher.runner().evaluations().front()->missing(), std::nullopt);
}

TEST(StalledTrainingRule, counts_from_its_own_start_before_the_first_step) {
  Watcher watcher(R"({"threshold": 60})");
  watcher.poll_until(100);
  EXPECT_THAT(watcher.fired_at, ElementsAre(60));
  EXPECT_EQ(watcher.hits.at(0).step.step, -1);
  EXPECT_EQ(watcher.hits.at(0).violations.at(0).context["newest_step"], -1);
}

TEST(StalledTrainingRule, is_armed_again_by_new_data) {
  Watcher watcher(R"({"threshold": 60})");
  watcher.see_step(0);
  watcher.poll_until(300);
  watcher.see_step(1);
  watcher.poll_until(600);
  EXPECT_THAT(watcher.fired_at, ElementsAre(60, 360));
}

TEST(StalledTrainingRule, a_single_silent_worker_counts_on_request) {
  for (const bool per_worker : {false, true}) {
    Watcher watcher(per_worker ? R"({"threshold": 60, "per_worker": true})"
                               : R"({"threshold": 60})");
    watcher.see_step(0, "worker_1");
    for (int i = 0; i < 10; ++i) {
      watcher.see_step(i, "worker_0");
      watcher.poll_until(i * 20);
    }
    if (!per_worker) {
      EXPECT_THAT(watcher.fired_at, IsEmpty());
      continue;
    }
    EXPECT_THAT(watcher.fired_at, ElementsAre(60));
    EXPECT_EQ(watcher.hits.at(0).violations.at(0).worker, "worker_1");
    EXPECT_THAT(watcher.hits.at(0).message, HasSubstr("Worker 'worker_1' has saved nothing"));
  }
}

TEST(StalledTrainingRule, polls_at_least_every_quarter_of_a_minute) {
  EXPECT_EQ(Watcher("{}").runner().tick_secs(), 15);
  EXPECT_EQ(Watcher(R"({"threshold": 5})").runner().tick_secs(), 0.5);
}

TEST(StalledTrainingRule, tells_whom_to_stop) {
  Watcher watcher(
      R"({"threshold": 60, "stop_training_on_fire": "True", "training_job_prefix": "my-job"})");
  watcher.poll_until(60);
  EXPECT_EQ(watcher.hits.at(0).violations.at(0).context["stop_training_on_fire"], true);
  EXPECT_EQ(watcher.hits.at(0).violations.at(0).context["training_job_name_prefix"], "my-job");
}

TEST(StalledTrainingRule, a_run_that_is_read_at_once_is_not_judged) {
  const Verdict verdict = judge(kRule, "loss@0,1=1,2");
  EXPECT_EQ(verdict.status, RuleStatus::no_issues_found);
  EXPECT_THAT(verdict.missing.value_or(""), HasSubstr("while a run grows"));
}

TEST(StalledTrainingRule, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"threshold", 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(creation_error(kRule, {{"threshold", "1.5"}}), HasSubstr("a whole number"));
  EXPECT_THAT(creation_error(kRule, {{"stop_training_on_fire", "maybe"}}),
              HasSubstr("true or false"));
}

}  // namespace
}  // namespace smd::rules
