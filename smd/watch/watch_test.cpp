#include "smd/watch/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "smd/rules/finding_log.h"
#include "smd/rules/trial_feed.h"
#include "tests/support/faulty_storage.h"

namespace smd::watch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kNow = std::chrono::steady_clock::time_point::min();

class WatchTest : public testing::TestWithParam<RunLayout> {
 protected:
  HookOptions options() const {
    HookOptions o;
    o.config.out_dir = "runs/first";
    o.config.layout = GetParam();
    o.config.save_config = *SaveConfig::broadcast({.save_interval = 1});
    o.log = null_log();
    o.environment = Environment();
    o.storage = storage;
    return o;
  }
  std::shared_ptr<Watch> watch_for(std::vector<WatchedRule> rules) const {
    auto made = Watch::create({.rules = std::move(rules)});
    EXPECT_TRUE(made.ok()) << made.error().message;
    return *made;
  }
  std::unique_ptr<Hook> hook_with(const std::shared_ptr<Watch>& watch, HookOptions o) const {
    watch->attach(o);
    auto hook = Hook::create(std::move(o));
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  // Gradients vanish from step 4 on, the loss stands still, and an activation overflows at step 6.
  void train(Hook& hook) const {
    for (int step = 0; step < 12; ++step) {
      ASSERT_TRUE(hook.begin_step().ok());
      std::vector<float> gradient(6, step < 4 ? 1.0f : 1e-9f);
      gradient[0] = 0;
      std::vector<float> activation{1, 2, step == 6 ? std::numeric_limits<float>::infinity() : 3};
      const float loss = 2;
      const auto view = [](const std::vector<float>& values, const Shape& shape) {
        return TensorView{.data = values.data(), .dtype = DType::float32, .shape = shape};
      };
      ASSERT_TRUE(hook.save("z_gradient", view(gradient, {2, 3}), Kind::gradient).ok());
      ASSERT_TRUE(hook.save("a_gradient", view(gradient, {6}), Kind::gradient).ok());
      ASSERT_TRUE(hook.save("activation", view(activation, {3})).ok());
      ASSERT_TRUE(
          hook.save("loss", {.data = &loss, .dtype = DType::float32, .shape = {}}, Kind::loss)
              .ok());
      ASSERT_TRUE(hook.save_scalar("lr", 0.5).ok());
    }
  }
  static std::vector<WatchedRule> three_rules() {
    return {{.rule = "VanishingGradient"},
            {.rule = "ExplodingTensor", .parameters = {{"tensor_regex", ".*"}}},
            {.rule = "LossNotDecreasing"}};
  }
  struct Told {
    std::vector<Json> hits;
    std::vector<std::string> messages;
  };
  static Told take_all(Watch& watch) {
    Told out;
    while (auto event = watch.take(kNow)) {
      if (const auto* hit = std::get_if<WatchHit>(&*event)) out.hits.push_back(hit->record);
      if (const auto* said = std::get_if<WatchMessage>(&*event)) out.messages.push_back(said->text);
    }
    EXPECT_TRUE(watch.ended());
    return out;
  }
  // Packed runs keep numbers and values apart, and so only a part of the order.
  std::string comparable(Json record) const {
    record.erase("time");
    for (Json& violation : record["violations"]) {
      if (GetParam() == RunLayout::packed) violation["context"].erase("order");
    }
    return record.dump();
  }
  std::vector<std::string> findings(const std::string& path = "findings/worker_0.jsonl") const {
    std::vector<std::string> out;
    const auto text = storage::read_all(*storage, path);
    if (!text.ok()) return out;
    std::string_view rest = as_text(*text);
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      EXPECT_NE(end, std::string_view::npos);
      if (end == std::string_view::npos) break;
      out.push_back(comparable(*parse_json(rest.substr(0, end), path)));
      rest.remove_prefix(end + 1);
    }
    return out;
  }
  // The hits that the same rules have on the finished run.
  std::vector<std::string> hits_on_disk(const std::vector<WatchedRule>& rules) const {
    std::vector<std::string> out;
    rules::Runner runner(
        {.on_hit = [&](const rules::Evaluation& evaluation, const rules::Hit& hit) {
          out.push_back(comparable(rules::hit_record(evaluation, hit)));
        }});
    for (const WatchedRule& rule : rules) {
      EXPECT_TRUE(runner.add(**rules::find_rule(rule.rule), rule.parameters).ok());
    }
    auto opened = Trial::open(storage, {.end_delay_secs = 0});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    if (!opened.ok()) return out;
    rules::TrialFeed feed(std::shared_ptr<Trial>(std::move(*opened)));
    EXPECT_TRUE(feed.advance(runner).ok());
    runner.finish();
    return out;
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
};

TEST_P(WatchTest, hits_are_those_that_the_finished_run_gives) {
  for (const bool values : {false, true}) {
    storage = storage::memory_storage();
    const auto watch = watch_for(three_rules());
    HookOptions o = options();
    if (values) o.config.include_collections = {"gradients"};
    auto hook = hook_with(watch, std::move(o));
    train(*hook);
    ASSERT_TRUE(hook->close().ok());
    std::vector<std::string> told;
    for (const Json& hit : take_all(*watch).hits) told.push_back(comparable(hit));
    EXPECT_EQ(told.size(), 10u);  // 8 vanishing gradients, an infinity, a loss that stands still
    EXPECT_EQ(told, hits_on_disk(three_rules()));
    EXPECT_EQ(told, findings());
  }
}

TEST_P(WatchTest, what_rules_need_is_saved_and_nothing_else) {
  const auto watch = watch_for({{.rule = "VanishingGradient", .save_interval = 3}});
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1000, .start_step = 1000});
  auto hook = hook_with(watch, std::move(o));
  train(*hook);
  ASSERT_TRUE(hook->close().ok());
  auto opened = Trial::open(storage, {.end_delay_secs = 0});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const auto names = (*opened)->snapshot()->names();
  std::vector<std::string> tensors;
  for (uint32_t i = 0; i < names.tensors.size(); ++i) tensors.push_back(names.tensors[i]);
  EXPECT_THAT(tensors, testing::UnorderedElementsAre("z_gradient", "a_gradient", "scalar/lr"));
  std::vector<Step> steps;
  for (const Json& hit : take_all(*watch).hits) steps.push_back(hit["step"].get<Step>());
  EXPECT_THAT(steps, ElementsAre(6, 9));
}

TEST_P(WatchTest, without_a_hit_no_file_is_made) {
  const auto watch = watch_for({{.rule = "ExplodingTensor", .parameters = {{"only_nan", true}}}});
  auto hook = hook_with(watch, options());
  train(*hook);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(take_all(*watch).hits, IsEmpty());
  EXPECT_THAT(*storage->list("findings", ""), IsEmpty());
}

TEST_P(WatchTest, another_process_of_the_same_name_gets_a_file_of_its_own) {
  ASSERT_TRUE(
      storage->put("findings/worker_0.jsonl", as_bytes("{}\n"), storage::Put::always, {}).ok());
  const auto watch = watch_for({{.rule = "VanishingGradient"}});
  auto hook = hook_with(watch, options());
  train(*hook);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(findings().size(), 1u);
  EXPECT_EQ(findings("findings/worker_0.2.jsonl").size(), 8u);
}

// A rule that does what a test wants at step 5.
struct Misbehaving final : rules::Rule {
  explicit Misbehaving(bool with_exception) : throws(with_exception) {}
  std::vector<rules::Selection*> selections() override { return {&selection}; }
  Status observe(const rules::StepView& step, rules::Hits&) override {
    selection.for_each(step, [](const rules::TensorRow&) {});
    if (step.info().step != 5) return {};
    if (throws) throw std::runtime_error("of the rule");
    return Error{ErrorCode::internal, "The rule gives up."};
  }
  bool throws;
  rules::Selection selection =
      *rules::Selection::create({.what = "anything"}, *rules::Parameters::parse("R", {}, Json()));
};

const rules::RuleKind kFailing = {
    .name = "Failing", .create = [](const rules::Parameters&, const rules::RuleContext&) {
      return rules::make_rule<Misbehaving>(false);
    }};
const rules::RuleKind kThrowing = {
    .name = "Throwing", .create = [](const rules::Parameters&, const rules::RuleContext&) {
      return rules::make_rule<Misbehaving>(true);
    }};

// Fires when it is asked without a new step.
struct Waiting final : rules::Rule {
  std::vector<rules::Selection*> selections() override { return {}; }
  Status observe(const rules::StepView&, rules::Hits&) override { return {}; }
  std::optional<double> tick_secs() const override { return 0.001; }
  Status tick(const rules::Progress& progress, rules::Hits& hits) override {
    if (!progress.newest_step || fired) return {};
    fired = true;
    hits.add("", "idle_secs", progress.now_secs - progress.newest_secs, rules::Op::above, 0);
    hits.set_severity(rules::Severity::info);
    return {};
  }
  bool fired = false;
};
const rules::RuleKind kWaiting = {
    .name = "Waiting", .create = [](const rules::Parameters&, const rules::RuleContext&) {
      return rules::make_rule<Waiting>();
    }};

TEST_P(WatchTest, rules_that_watch_the_clock_are_asked_while_no_step_comes) {
  auto watch = *Watch::create({.rules = {{.kind = &kWaiting}}});
  auto hook = hook_with(watch, options());
  ASSERT_TRUE(hook->begin_step(7).ok());
  ASSERT_TRUE(hook->save_scalar("x", 1).ok());
  ASSERT_TRUE(hook->end_step().ok());
  const auto event = watch->take(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  ASSERT_TRUE(event.has_value());
  const Json& record = std::get<WatchHit>(*event).record;
  EXPECT_EQ(record["rule"], "Waiting");
  EXPECT_EQ(record["step"], 7);
  EXPECT_EQ(record["severity"], "info");  // of this hit, not of the rule
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(findings().size(), 1u);
}

TEST_P(WatchTest, a_rule_that_fails_harms_neither_training_nor_others) {
  const auto watch = watch_for({{.kind = &kFailing}, {.rule = "VanishingGradient"}});
  auto hook = hook_with(watch, options());
  train(*hook);
  ASSERT_TRUE(hook->close().ok());
  const Told told = take_all(*watch);
  EXPECT_EQ(told.hits.size(), 8u);
  EXPECT_THAT(told.messages, ElementsAre(HasSubstr("Failing failed and is not evaluated any more. "
                                                   "The rule gives up.")));
}

TEST_P(WatchTest, a_rule_that_throws_ends_the_watch_and_not_the_recording) {
  const auto watch = watch_for({{.kind = &kThrowing}, {.rule = "VanishingGradient"}});
  auto hook = hook_with(watch, options());
  train(*hook);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(take_all(*watch).hits.size(), 1u);
  auto opened = Trial::open(storage, {.end_delay_secs = 0});
  ASSERT_TRUE(opened.ok());
  EXPECT_EQ((*opened)->snapshot()->row_count(), 12u);
}

TEST_P(WatchTest, a_storage_without_room_does_not_keep_rules_from_judging) {
  const auto full = std::make_shared<storage::FaultyStorage>();
  HookOptions o = options();
  o.storage = full;
  const auto watch = watch_for({{.rule = "VanishingGradient"}});
  auto hook = hook_with(watch, std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  full->fail(true);
  train(*hook);
  EXPECT_FALSE(hook->close().ok());
  EXPECT_EQ(take_all(*watch).hits.size(), 8u);
}

TEST_P(WatchTest, values_that_are_too_large_to_keep_are_judged_all_the_same) {
  // Larger than a block of the writer, so it comes in parts, and larger than what is kept.
  const Shape shape{17, 1 << 20};
  std::vector<float> values(size_t{17} << 20, 0.0f);
  const auto watch = watch_for({{.rule = "VanishingGradient"}});
  HookOptions o = options();
  o.config.include_collections = {"gradients"};
  auto hook = hook_with(watch, std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
  ASSERT_TRUE(hook->save("gradient", view, Kind::gradient).ok());
  ASSERT_TRUE(hook->close().ok());
  const auto hits = take_all(*watch).hits;
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_FALSE(hits[0]["violations"][0]["context"].contains("zero_share"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, WatchTest,
                         testing::Values(RunLayout::original, RunLayout::packed),
                         [](const auto& layout) { return std::string(name_of(layout.param)); });

TEST(Watch, wrong_rules_are_refused) {
  const auto error = [](WatchedRule rule) {
    const auto made = Watch::create({.rules = {std::move(rule)}});
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_THAT(error({.rule = "VanishingGradients"}), HasSubstr("VanishingGradient"));
  EXPECT_THAT(error({.rule = "VanishingGradient", .parameters = {{"treshold", 1}}}),
              HasSubstr("threshold"));
  EXPECT_THAT(error({.rule = "VanishingGradient", .save_interval = 0}), HasSubstr("0"));
}

TEST(Watch, one_watch_serves_one_hook) {
  auto watch = *Watch::create({.rules = {{.rule = "VanishingGradient"}}});
  std::vector<std::string> lines;
  for (int i = 0; i < 2; ++i) {
    HookOptions o;
    o.log = null_log();
    o.environment = Environment();
    o.storage = storage::memory_storage();
    watch->attach(o);
    auto hook = Hook::create(std::move(o));
    ASSERT_TRUE(hook.ok());
    ASSERT_TRUE((*hook)->begin_step().ok());
    EXPECT_TRUE((*hook)->close().ok());
  }
}

TEST(Watch, events_that_nobody_takes_are_dropped) {
  auto watch = *Watch::create({.rules = {{.rule = "ExplodingTensor"}}, .max_events = 3});
  HookOptions o;
  o.log = null_log();
  o.environment = Environment();
  o.storage = storage::memory_storage();
  watch->attach(o);
  auto hook = Hook::create(std::move(o));
  ASSERT_TRUE(hook.ok());
  for (int i = 0; i < 9; ++i) {
    ASSERT_TRUE((*hook)->begin_step().ok());
    ASSERT_TRUE((*hook)->save_scalar("x", std::nan("")).ok());
  }
  ASSERT_TRUE((*hook)->close().ok());
  std::vector<Step> steps;
  while (auto event = watch->take(kNow)) {
    steps.push_back(std::get<WatchHit>(*event).record["step"].get<Step>());
  }
  EXPECT_THAT(steps, ElementsAre(6, 7, 8));
}

}  // namespace
}  // namespace smd::watch
