#include "smd/rules/run_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/planted_run.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;

// Fires when nothing has come for a minute; keeps what it was told.
std::vector<Progress>* told = nullptr;

class Silence final : public Rule {
 public:
  std::vector<Selection*> selections() override { return {}; }
  Status observe(const StepView&, Hits&) override { return {}; }
  Status tick(const Progress& progress, Hits& hits) override {
    told->push_back(progress);
    const double age = progress.now_secs - progress.newest_secs;
    if (!progress.has_ended && age >= 60) hits.add("", "age", age, Op::above, 60);
    return {};
  }
};

const RuleKind kSilence = {.name = "Silence", .create = [](const Parameters&, const RuleContext&) {
                             return make_rule<Silence>();
                           }};

class RunFollowerTest : public testing::Test {
 protected:
  RunFollowerTest() {
    told = &progress;
    EXPECT_TRUE(runner.add(kSilence, nullptr).ok());
    EXPECT_TRUE(runner.add(**find_rule("ExplodingTensor"), nullptr).ok());
  }
  ~RunFollowerTest() override { told = nullptr; }

  std::shared_ptr<Trial> trial() const {
    auto opened = Trial::open(run.storage, {.end_delay_secs = 0});
    EXPECT_TRUE(opened.ok());
    return std::shared_ptr<Trial>(std::move(*opened));
  }
  bool poll(RunFollower& follower, double after_secs) {
    clock->advance(after_secs);
    const auto is_over = follower.poll();
    EXPECT_TRUE(is_over.ok()) << is_over.error().message;
    return is_over.ok() && *is_over;
  }

  PlantedRun run;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1000);
  std::vector<Progress> progress;
  std::vector<std::string> hits;
  Runner runner{{.on_hit = [this](const Evaluation&, const Hit& hit) {
    hits.push_back(hit.rule + " " + std::to_string(hit.step.step));
  }}};
};

TEST_F(RunFollowerTest, hits_come_while_the_run_grows_and_it_ends_with_the_job) {
  RunFollower follower(trial(), runner, clock);
  EXPECT_FALSE(poll(follower, 1));  // nothing is there yet
  run.collections();
  run.step(0).floats("x", {1});
  EXPECT_FALSE(poll(follower, 1));
  run.step(1).floats("x", {NAN});
  EXPECT_FALSE(poll(follower, 1));
  EXPECT_THAT(hits, ElementsAre("ExplodingTensor 1"));
  run.step(2).floats("x", {NAN});
  run.end();
  EXPECT_TRUE(poll(follower, 1));
  EXPECT_THAT(hits, ElementsAre("ExplodingTensor 1", "ExplodingTensor 2"));
  EXPECT_EQ(runner.step_count(), 3u);
  EXPECT_EQ(runner.evaluations()[0]->status(), RuleStatus::no_issues_found);
  EXPECT_TRUE(progress.back().has_ended);
}

TEST_F(RunFollowerTest, rules_that_watch_the_clock_learn_when_something_last_came) {
  run.collections(2);
  RunFollower follower(trial(), runner, clock);
  EXPECT_FALSE(poll(follower, 5));
  EXPECT_FALSE(progress.back().newest_step.has_value());
  EXPECT_EQ(progress.back().newest_secs, 1000);
  run.step(0, "worker_0").scalar("loss", 1);
  run.step(0, "worker_1").scalar("loss", 1);
  EXPECT_FALSE(poll(follower, 5));
  run.step(1, "worker_0").scalar("loss", 1);
  EXPECT_FALSE(poll(follower, 10));
  EXPECT_EQ(progress.back().newest_step->step, 1);
  EXPECT_EQ(progress.back().newest_secs, 1020);
  EXPECT_EQ(progress.back().worker_secs.at("worker_0"), 1020);
  EXPECT_EQ(progress.back().worker_secs.at("worker_1"), 1010);
  EXPECT_FALSE(poll(follower, 59));
  EXPECT_TRUE(hits.empty());
  EXPECT_FALSE(poll(follower, 1));
  EXPECT_THAT(hits, ElementsAre("Silence 1"));
}

TEST_F(RunFollowerTest, the_last_steps_of_a_job_may_lack_a_worker) {
  run.collections(2);
  run.step(0, "worker_0").floats("x", {1});
  run.step(0, "worker_1").floats("x", {1});
  run.step(1, "worker_0").floats("x", {NAN});
  RunFollower follower(trial(), runner, clock);
  EXPECT_FALSE(poll(follower, 1));
  EXPECT_TRUE(hits.empty());
  run.end();
  EXPECT_TRUE(poll(follower, 1));
  EXPECT_THAT(hits, ElementsAre("ExplodingTensor 1"));
}

TEST_F(RunFollowerTest, it_is_over_when_every_rule_has_stopped) {
  Runner once({.on_fire = OnFire::stop});
  ASSERT_TRUE(once.add(**find_rule("ExplodingTensor"), nullptr).ok());
  run.collections();
  run.step(0).floats("x", {NAN});
  RunFollower follower(trial(), once, clock);
  EXPECT_TRUE(poll(follower, 1));
  EXPECT_EQ(once.evaluations()[0]->hit_count(), 1u);
}

}  // namespace
}  // namespace smd::rules
