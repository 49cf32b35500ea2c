#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kRule = "TrainingPause";

// 60 steps; `pause`: seconds before each.
Verdict judge_times(const std::function<double(int)>& pause, const Json& parameters = {}) {
  Verdict out;
  Names names;
  CollectionSet collections;
  const RunView run{.name = "run", .names = &names, .collections = &collections};
  Runner runner({.on_hit = [&](const Evaluation&, const Hit& hit) { out.hits.push_back(hit); }});
  EXPECT_TRUE(runner.add(**find_rule(kRule), parameters).ok());
  StepView view;
  double now = 1000;
  for (int i = 0; i < 60; ++i) {
    now += pause(i);
    view.begin(run, {.step = i, .mode = Mode::train, .mode_step = i}, now, 0, {});
    runner.observe(view);
  }
  runner.finish();
  return out;
}

TEST(TrainingPause, one_long_pause_is_found) {
  const Verdict verdict = judge_times([](int i) { return i == 40 ? 120 : 0.5; });
  EXPECT_THAT(verdict.steps(), ElementsAre(40));
  EXPECT_THAT(verdict.hits.at(0).message, HasSubstr("Step 40 came 120 s after the one before it"));
  EXPECT_THAT(judge_times([](int i) { return i == 40 ? 1 : 0.001; }, {{"least_secs", 0.3}}).steps(),
              ElementsAre(40));
}

TEST(TrainingPause, what_comes_again_is_slow_or_short_is_silent) {
  // Checkpoints, the first steps, slow steps, and a pause that nobody minds.
  EXPECT_THAT(judge_times([](int i) { return i % 20 == 19 ? 60 : 0.5; }).hits, IsEmpty());
  EXPECT_THAT(judge_times([](int i) { return i == 3 ? 600 : 0.5; }).hits, IsEmpty());
  EXPECT_THAT(judge_times([](int i) { return i == 40 ? 120 : 20; }).hits, IsEmpty());
  EXPECT_THAT(judge_times([](int i) { return i == 40 ? 20 : 0.01; }).hits, IsEmpty());
}

TEST(TrainingPause, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"factor", 1}}), HasSubstr("above 1"));
}

}  // namespace
}  // namespace smd::rules
