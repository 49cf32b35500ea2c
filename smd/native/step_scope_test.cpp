#include "smd/native/step_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "smd/native/create_hook.h"
#include "tests/support/recorded_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

class StepScopeTest : public testing::Test {
 protected:
  std::unique_ptr<Hook> make(std::string_view json) {
    HookOptions options;
    options.log = log;
    options.environment = Environment();
    options.storage = storage;
    auto hook = create_hook("unused", json, std::move(options));
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  std::unique_ptr<Hook> saving_every(int interval) {
    return make("{\"HookParameters\": {\"save_all\": true, \"save_interval\": " +
                std::to_string(interval) + "}}");
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::shared_ptr<Lines> log = std::make_shared<Lines>();
  RecordedRun run{storage};
  std::vector<float> weights{1, 2, 3, 4};
};

TEST_F(StepScopeTest, saves_the_step_that_it_spans) {
  auto hook = saving_every(2);
  for (int i = 0; i < 4; ++i) {
    StepScope step(*hook);
    EXPECT_EQ(step.is_wanted(), i % 2 == 0);
    EXPECT_EQ(step.wants("w"), i % 2 == 0);
    weights[0] = static_cast<float>(i);
    step.save("w", view(weights, {2, 2}));
    step.save_scalar("loss", i * 0.5);
    EXPECT_TRUE(step.status().ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(run.steps(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(run.names(1), ElementsAre("scalar/loss"));
  EXPECT_THAT(run.names(2), UnorderedElementsAre("w", "scalar/loss"));
  EXPECT_THAT(run.values<float>(2, "w"), ElementsAre(2, 2, 3, 4));
  EXPECT_THAT(run.values<double>(3, "scalar/loss"), ElementsAre(1.5));
  EXPECT_TRUE(run.ended());
  EXPECT_THAT(log->lines, ElementsAre(HasSubstr("Recording took")));  // the bill
}

TEST_F(StepScopeTest, ends_the_step_on_an_early_return_and_on_an_exception) {
  auto hook = saving_every(1);
  const auto leave_early = [&] {
    StepScope step(*hook);
    step.save("w", view(weights));
    if (step.is_wanted()) return;
    FAIL();
  };
  leave_early();
  EXPECT_EQ(hook->last_saved_step(), 0);
  EXPECT_FALSE(hook->is_step_wanted());
  try {
    StepScope step(*hook);
    step.save("w", view(weights));
    throw std::runtime_error("the training failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(hook->last_saved_step(), 1);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(run.steps(), ElementsAre(0, 1));
}

TEST_F(StepScopeTest, begins_steps_of_a_mode_or_with_a_number) {
  auto hook = saving_every(1);
  {
    StepScope step(*hook, Mode::train);
    step.save("w", view(weights));
  }
  {
    StepScope step(*hook, Mode::eval);
    step.save("w", view(weights));
  }
  {
    StepScope step(*hook, Step{10});
    step.save("w", view(weights));
  }
  {
    StepScope step(*hook, Step{10});
    EXPECT_EQ(step.status().error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(step.is_wanted());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(run.steps(), ElementsAre(0, 1, 10));
  EXPECT_EQ(run.index(0).mode, Mode::train);
  EXPECT_EQ(run.index(1).mode, Mode::eval);
  EXPECT_EQ(run.index(1).mode_step, 0);
}

TEST_F(StepScopeTest, refuses_to_save_into_a_step_that_is_over) {
  auto hook = saving_every(1);
  StepScope outer(*hook);
  outer.save("w", view(weights));
  ASSERT_TRUE(outer.end().ok());
  EXPECT_FALSE(outer.wants("w"));
  outer.save_scalar("late", 1);
  EXPECT_EQ(outer.status().error().message, "'late' was saved into a step that is over.");
  StepScope next(*hook);
  next.save("w", view(weights));
  outer.save("lost", view(weights));
  ASSERT_TRUE(next.end().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(run.names(0), ElementsAre("w"));
  EXPECT_THAT(run.names(1), ElementsAre("w"));
}

TEST_F(StepScopeTest, leaves_the_step_alone_that_another_scope_began) {
  auto hook = saving_every(1);
  auto outer = std::make_unique<StepScope>(*hook);
  StepScope inner(*hook);
  outer.reset();
  inner.save("w", view(weights));
  ASSERT_TRUE(inner.end().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(run.steps(), ElementsAre(1));
}

TEST_F(StepScopeTest, survives_a_hook_that_is_closed_first) {
  auto hook = saving_every(1);
  {
    StepScope step(*hook);
    step.save("w", view(weights));
    ASSERT_TRUE(hook->close().ok());
    step.save("late", view(weights));
    EXPECT_EQ(step.status().error().code, ErrorCode::closed);
  }
  StepScope after(*hook);
  EXPECT_EQ(after.status().error().code, ErrorCode::closed);
  EXPECT_THAT(run.names(0), ElementsAre("w"));
}

TEST_F(StepScopeTest, logs_an_error_that_nobody_asked_for_once) {
  auto hook = saving_every(1);
  for (int i = 0; i < 3; ++i) {
    StepScope step(*hook);
    step.save("w", view(weights, {3, 3}));
    step.save_owned("o", own(weights, {5}));
    step.save_scalar("loss", i);
  }
  EXPECT_THAT(log->lines, ElementsAre("'w': 4 elements do not fill the shape [3, 3]."));
  {
    StepScope step(*hook);
    step.save("", view(weights));
    EXPECT_FALSE(step.status().ok());
  }
  EXPECT_EQ(log->lines.size(), 1u);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(run.names(2), ElementsAre("scalar/loss"));
}

TEST_F(StepScopeTest, saves_owned_tensors_and_strings) {
  auto hook = saving_every(1);
  {
    StepScope step(*hook);
    step.save_owned("owned", own(std::vector<double>{1, 2}, {1, 2}), Kind::weight);
    step.save_strings("labels", std::vector<std::string>{"cat", "dog"});
    EXPECT_TRUE(step.end().ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(run.values<double>(0, "owned"), ElementsAre(1, 2));
  EXPECT_THAT(run.event(0, "labels").tensor->strings, ElementsAre("cat", "dog"));
  EXPECT_TRUE(hook->collections().find("weights")->has_tensor_name("owned"));
}

TEST_F(StepScopeTest, reports_wrong_json_and_unknown_keys) {
  const auto broken = create_hook("unused", "{\"HookParameters\": ");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(create_hook("unused", R"({"HookParameters": {"save_interval": 0}})").ok());
  EXPECT_FALSE(create_hook("s3://bucket/run").ok());
}

TEST_F(StepScopeTest, prefers_the_given_directory) {
  HookOptions options;
  options.storage = storage;
  auto hook = create_hook("given", R"({"LocalPath": "in_the_json"})", std::move(options));
  ASSERT_TRUE(hook.ok());
  EXPECT_EQ((*hook)->config().out_dir, "given");
}

}  // namespace
}  // namespace smd
