#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "smd/base/json.h"
#include "smd/hook/hook.h"
#include "smd/storage/subfolder.h"
#include "tests/support/recorded_run.h"

namespace smd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

// Moves on with every look at it: what happens between two looks costs one tick.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(double tick_secs) : tick_secs_(tick_secs) {}
  void advance(double secs) { secs_ += secs; }
  double unix_secs() const override { return 1600000000; }
  std::chrono::steady_clock::time_point now() const override {
    secs_ += tick_secs_;
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(secs_)));
  }

 private:
  const double tick_secs_;
  mutable double secs_ = 1000;
};

class HookWatchTest : public testing::Test {
 protected:
  HookOptions options(int64_t interval) const {
    HookOptions o;
    o.log = log;
    o.clock = clock;
    o.environment = Environment();
    o.storage = storage;
    o.config.save_all = true;
    o.config.save_config = *SaveConfig::broadcast({.save_interval = interval});
    o.config.reduction_config = *ReductionConfig::create({.reductions = {"min", "max"}});
    return o;
  }
  static std::unique_ptr<Hook> make(HookOptions o) {
    auto hook = Hook::create(std::move(o));
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  // One step of a training whose tensor "w" holds `value`.
  void step(Hook& hook, float value = 1, const std::string& name = "w") {
    clock->advance(0.01);
    ASSERT_TRUE(hook.begin_step().ok());
    const std::vector<float> values(4, value);
    const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
    ASSERT_TRUE(hook.save(name, view).ok());
  }
  std::vector<Step> steps(const std::string& folder = "") const { return run(folder).steps(); }
  RecordedRun run(const std::string& folder = "") const {
    return RecordedRun(folder.empty() ? storage : storage::subfolder_storage(storage, folder));
  }
  Json finding(const std::string& file) const {
    const auto text = storage::read_all(*storage, "findings/" + file + ".json");
    EXPECT_TRUE(text.ok()) << file;
    return text.ok() ? *parse_json(as_text(*text), file) : Json();
  }
  bool has_finding(const std::string& file) const {
    return storage->stat("findings/" + file + ".json").ok();
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::shared_ptr<Lines> log = std::make_shared<Lines>();
  std::shared_ptr<TickingClock> clock = std::make_shared<TickingClock>(1e-4);
  const Shape shape{4};
};

// ---- the budget

TEST_F(HookWatchTest, the_bill_counts_steps_tensors_and_bytes) {
  auto hook = make(options(2));
  for (int i = 0; i < 5; ++i) step(*hook);
  ASSERT_TRUE(hook->close().ok());
  const Bill bill = hook->bill();
  EXPECT_EQ(bill.steps, 5);
  EXPECT_EQ(bill.saved_steps, 3);
  EXPECT_EQ(bill.tensors, 3);
  EXPECT_EQ(bill.bytes, 3u * 2 * 8);
  EXPECT_GT(bill.cost_secs, 0);
  EXPECT_GE(bill.training_secs, 0.04);
  EXPECT_EQ(bill.stride, 1);
  EXPECT_THAT(log->lines, ElementsAre(HasSubstr("3 tensors, 48 bytes in 3 of 5 steps")));
}

TEST_F(HookWatchTest, a_hook_that_saved_nothing_sends_no_bill) {
  auto hook = make(options(2));
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(log->lines, IsEmpty());
}

TEST_F(HookWatchTest, intervals_become_longer_until_the_cost_fits) {
  HookOptions o = options(1);
  o.config.save_all = false;  // losses would stay at every step
  o.config.include_regex = {".*"};
  o.default_collections.clear();
  o.config.max_overhead = 0.01;
  auto hook = make(std::move(o));
  for (int i = 0; i < 6000; ++i) step(*hook);
  EXPECT_LE(hook->bill().share(), 0.0105);
  EXPECT_GE(hook->bill().share(), 0.004);
  EXPECT_GT(hook->bill().stride, 1);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_GT(steps().size(), 6000u / 64);
  EXPECT_LT(steps().size(), 6000u / 2);
}

TEST_F(HookWatchTest, without_a_budget_nothing_is_stretched) {
  auto hook = make(options(1));
  for (int i = 0; i < 100; ++i) step(*hook);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(steps().size(), 100u);
}

TEST_F(HookWatchTest, what_the_user_pinned_stays) {
  HookOptions o = options(1);
  o.config.max_overhead = 0.0001;
  o.config.max_interval = 64;
  o.config.collections.push_back({.name = "mine",
                                  .include_regex = {"mine"},
                                  .save_config = *SaveConfig::broadcast({.save_interval = 3})});
  o.config.include_collections = {"mine", "losses"};
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1, .save_steps = {70, 71}});
  auto hook = make(std::move(o));
  const float value = 1;
  const int64_t one[] = {1};
  const TensorView view{.data = &value, .dtype = DType::float32, .shape = one};
  for (int i = 0; i < 129; ++i) {
    step(*hook);
    ASSERT_TRUE(hook->save("mine", view).ok());
    ASSERT_TRUE(hook->save("the_loss", view, Kind::loss).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  const RecordedRun recorded = run();
  int stretched = 0;
  for (const Step at : recorded.steps()) {
    const auto names = recorded.names(at);
    const bool has_w =
        std::find(names.begin(), names.end(), "w") != names.end() ||
        std::any_of(names.begin(), names.end(), [](const auto& n) { return n.ends_with("/w"); });
    stretched += has_w ? 1 : 0;
    if (at == 70 || at == 71 || at == 64 || at == 128) {
      EXPECT_TRUE(has_w) << at;
    }
    if (at % 3 == 0) {
      EXPECT_TRUE(std::any_of(names.begin(), names.end(), [](const auto& n) {
        return n.ends_with("mine");
      })) << at;
    }
    EXPECT_THAT(names, Contains("the_loss")) << at;
  }
  EXPECT_EQ(recorded.steps().size(), 129u) << "losses are saved at every step";
  EXPECT_LT(stretched, 40);
}

TEST_F(HookWatchTest, without_an_interval_the_budget_decides_alone) {
  HookOptions o = options(1);
  o.config.save_config.reset();
  o.config.max_overhead = 0.9;
  auto hook = make(std::move(o));
  for (int i = 0; i < 10; ++i) step(*hook);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(steps().size(), 10u);
}

TEST_F(HookWatchTest, all_workers_save_the_steps_that_the_chief_chooses) {
  const auto worker = [&](int rank, const std::shared_ptr<const Clock>& time) {
    HookOptions o = options(1);
    o.clock = time;
    o.config.max_overhead = 0.01;
    o.config.include_workers = IncludeWorkers::all;
    o.identify = [rank] {
      return Worker{.name = "worker_" + std::to_string(rank), .chief = "worker_0", .count = 2};
    };
    return make(std::move(o));
  };
  auto chief = worker(0, clock);
  auto other = worker(1, std::make_shared<ManualClock>(5));  // to whom nothing costs anything
  const std::vector<float> values(4, 1);
  const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
  for (int i = 0; i < 2000; ++i) {
    step(*chief);
    ASSERT_TRUE(chief->wait_until_written(std::chrono::milliseconds(5000)));
    ASSERT_TRUE(other->begin_step().ok());
    ASSERT_TRUE(other->save("w", view).ok());
  }
  EXPECT_GT(chief->bill().stride, 1);
  EXPECT_EQ(chief->bill().stride, other->bill().stride);
  EXPECT_EQ(chief->bill().saved_steps, other->bill().saved_steps);
  ASSERT_TRUE(chief->close().ok());
  ASSERT_TRUE(other->close().ok());
  for (const Step at : steps())
    EXPECT_THAT(run().index(at, "worker_1").tensors, testing::Not(IsEmpty()));
}

TEST_F(HookWatchTest, a_budget_must_be_a_share) {
  for (const double wrong : {0.0, -0.1, 1.5, static_cast<double>(kNan)}) {
    HookOptions o = options(1);
    o.config.max_overhead = wrong;
    const auto hook = Hook::create(std::move(o));
    ASSERT_FALSE(hook.ok()) << wrong;
    EXPECT_THAT(hook.error().message, HasSubstr("max_overhead is"));
  }
}

// ---- the flight recorder

TEST_F(HookWatchTest, a_nan_writes_the_steps_before_it_into_the_run) {
  HookOptions o = options(20);
  o.config.flight_recorder = 5;
  auto hook = make(std::move(o));
  for (int i = 0; i < 25; ++i) step(*hook, i == 17 ? kNan : static_cast<float>(i));
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 13, 14, 15, 16, 17, 20));
  EXPECT_EQ(run().values<float>(15, "smdebug/reductions/max/w").at(0), 15.0f);
  EXPECT_EQ(finding("flight_recorder_worker_0")["steps_in_run"], Json({13, 14, 15, 16, 17}));
  const Json bad = finding("first_bad_tensor_worker_0");
  EXPECT_EQ(bad["tensor"], "w");
  EXPECT_EQ(bad["step"], 17);
  EXPECT_EQ(bad["nan"], 4);
  ASSERT_EQ(bad["before"].size(), 4u);
  EXPECT_EQ(bad["before"][3]["max"], 16.0);
}

TEST_F(HookWatchTest, steps_before_a_saved_one_go_to_a_run_of_their_own) {
  HookOptions o = options(10);
  o.config.flight_recorder = 5;
  auto hook = make(std::move(o));
  for (int i = 0; i < 22; ++i) step(*hook, i == 20 ? kNan : static_cast<float>(i));
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 10, 20)) << "the run keeps its order";
  EXPECT_THAT(steps("flight"), ElementsAre(16, 17, 18, 19)) << "20 is in the run";
  EXPECT_EQ(run("flight").values<float>(18, "smdebug/reductions/max/w").at(0), 18.0f);
  EXPECT_TRUE(storage->stat("flight/training_job_end.ts").ok());
  EXPECT_EQ(finding("flight_recorder_worker_0")["folder"], "flight");
}

TEST_F(HookWatchTest, of_several_workers_each_has_a_run_of_its_own) {
  HookOptions o = options(100);
  o.config.flight_recorder = 3;
  o.config.include_workers = IncludeWorkers::all;
  o.identify = [] { return Worker{.name = "worker_1", .chief = "worker_0", .count = 2}; };
  auto hook = make(std::move(o));
  for (int i = 0; i < 6; ++i) step(*hook);
  ASSERT_TRUE(hook->dump_flight_recorder("a rule fired").ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps("flight/worker_1"), ElementsAre(3, 4, 5));
  const auto json = storage::read_all(
      *storage, "flight/worker_1/collections/000000000/worker_1_collections.json");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*parse_json(as_text(*json), ""))["_meta"]["num_workers"], 1);
  EXPECT_EQ(finding("flight_recorder_worker_1")["reason"], "a rule fired");
}

TEST_F(HookWatchTest, a_dump_waits_for_the_end_of_the_step_and_is_made_once) {
  HookOptions o = options(100);
  o.config.flight_recorder = 3;
  auto hook = make(std::move(o));
  for (int i = 0; i < 5; ++i) step(*hook);
  ASSERT_TRUE(hook->dump_flight_recorder("by hand").ok());
  EXPECT_FALSE(has_finding("flight_recorder_worker_0"));
  ASSERT_TRUE(hook->save_scalar("s", 1).ok());
  step(*hook);
  step(*hook);
  ASSERT_TRUE(hook->end_step().ok());
  ASSERT_TRUE(hook->dump_flight_recorder("again").ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 2, 3, 4, 5, 6));
  EXPECT_THAT(run().names(4), Contains("scalar/s")) << "the step is published whole";
  EXPECT_EQ(finding("flight_recorder_worker_0_2")["reason"], "again");
}

TEST_F(HookWatchTest, ended_steps_are_dumped_at_once_and_the_current_one_goes_on) {
  HookOptions o = options(100);
  o.config.flight_recorder = 3;
  auto hook = make(std::move(o));
  for (int i = 0; i < 5; ++i) step(*hook);
  ASSERT_TRUE(hook->dump_ended_steps("SIGTERM").ok());
  ASSERT_TRUE(hook->wait_until_written(std::chrono::seconds(10)));
  EXPECT_THAT(steps(), ElementsAre(0, 2, 3));
  EXPECT_EQ(finding("flight_recorder_worker_0")["steps_in_run"], Json({2, 3}));
  ASSERT_TRUE(hook->save_scalar("s", 1).ok());
  step(*hook);
  step(*hook);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 2, 3, 4)) << "what came after the dump is not part of it";
  EXPECT_THAT(run().names(4), IsSupersetOf({"scalar/s", "smdebug/reductions/max/w"}));
  EXPECT_EQ(finding("flight_recorder_worker_0_2")["steps_in_run"], Json({4}));
}

TEST_F(HookWatchTest, a_saved_step_goes_on_after_a_dump_of_the_ended_ones) {
  HookOptions o = options(4);
  o.config.flight_recorder = 3;
  auto hook = make(std::move(o));
  for (int i = 0; i < 5; ++i) step(*hook);
  ASSERT_TRUE(hook->dump_ended_steps("SIGTERM").ok());
  ASSERT_TRUE(hook->wait_until_written(std::chrono::seconds(10)));
  EXPECT_THAT(steps("flight"), ElementsAre(2, 3)) << "they come before the step that is open";
  ASSERT_TRUE(hook->save_scalar("s", 1).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 4));
  EXPECT_THAT(run().names(4), Contains("scalar/s"));
}

TEST_F(HookWatchTest, values_are_kept_when_they_are_wanted) {
  HookOptions o = options(100);
  o.config.flight_recorder = 2;
  o.config.flight_recorder_raw = true;
  auto hook = make(std::move(o));
  for (int i = 0; i < 4; ++i) step(*hook, static_cast<float>(i));
  ASSERT_TRUE(hook->dump_flight_recorder("by hand").ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(run().values<float>(3, "w").at(0), 3.0f);
}

TEST_F(HookWatchTest, without_a_recorder_there_is_nothing_to_dump) {
  auto hook = make(options(1));
  step(*hook);
  const Status dumped = hook->dump_flight_recorder("x");
  ASSERT_FALSE(dumped.ok());
  EXPECT_EQ(dumped.error().code, ErrorCode::invalid_argument);
}

TEST_F(HookWatchTest, collections_without_reductions_are_recorded_with_the_usual_ones) {
  HookOptions o = options(100);
  o.config.reduction_config.reset();
  o.config.flight_recorder = 1;
  auto hook = make(std::move(o));
  for (int i = 0; i < 3; ++i) step(*hook, 2);
  ASSERT_TRUE(hook->dump_flight_recorder("by hand").ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(run().values<float>(2, "smdebug/reductions/mean/w").at(0), 2.0f);
  EXPECT_THAT(run().names(2), testing::Not(Contains("w")));
}

// ---- the first bad tensor

TEST_F(HookWatchTest, a_bad_tensor_is_found_where_reductions_are_saved) {
  auto hook = make(options(2));
  step(*hook);
  step(*hook, kNan);  // not looked at
  step(*hook, kNan);
  ASSERT_EQ(hook->first_bad_tensor(), "w");
  hook->set_call_site({.module = "net", .file = "train.py", .line = 3, .text = "y = net(x)"});
  step(*hook, kNan, "later");
  step(*hook, kNan, "later");
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(finding("first_bad_tensor_worker_0")["step"], 2);
  EXPECT_EQ(finding("first_bad_tensor_worker_0")["source"]["text"], "y = net(x)");
  const Json before = finding("first_bad_tensor_worker_0")["before"];
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0]["step"], 0);
  EXPECT_TRUE(before[0].contains("max"));
  EXPECT_THAT(log->lines, Contains(HasSubstr("'w' (4 NaN) at step 2")));
  EXPECT_EQ(std::count_if(log->lines.begin(), log->lines.end(),
                          [](const auto& l) { return l.starts_with("First non-finite"); }),
            1);
}

TEST_F(HookWatchTest, every_step_is_looked_at_on_request) {
  HookOptions o = options(100);
  o.config.reduction_config.reset();
  o.config.first_bad_tensor = true;
  auto hook = make(std::move(o));
  for (int i = 0; i < 5; ++i) {
    step(*hook, i == 3 ? std::numeric_limits<float>::infinity() : 1, "a");
    step(*hook, 1, "b");
  }
  ASSERT_TRUE(hook->close().ok());
  const Json bad = finding("first_bad_tensor_worker_0");
  EXPECT_EQ(bad["tensor"], "a");
  EXPECT_EQ(bad["positive_inf"], 4);
  EXPECT_EQ(bad["step"], 6);
  EXPECT_THAT(steps(), ElementsAre(0)) << "looking saves nothing";
}

TEST_F(HookWatchTest, reductions_that_the_caller_computed_are_looked_at_too) {
  HookOptions o = options(100);
  o.config.flight_recorder = 2;
  auto hook = make(std::move(o));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    EXPECT_FALSE(hook->wanted("w").reductions.empty());
    const std::pair<std::string, Number> values[] = {
        {"min", Number::real(DType::float32, 1)},
        {"max", Number::real(DType::float32, i == 2 ? kNan : 1)}};
    ASSERT_TRUE(hook->save_reductions("w", values).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_TRUE(finding("first_bad_tensor_worker_0")["nan"].is_null());
  EXPECT_THAT(steps(), ElementsAre(0, 1, 2));
}

TEST_F(HookWatchTest, tensors_and_numbers_saved_by_hand_are_looked_at) {
  HookOptions o = options(100);
  o.config.flight_recorder = 2;
  auto hook = make(std::move(o));
  const std::vector<std::string> targets = {"default"};
  const std::vector<float> values(4, 2);
  const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save_tensor("by_hand", view, targets).ok());
  }
  ASSERT_TRUE(hook->save_scalar("loss", kNan).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(finding("first_bad_tensor_worker_0")["tensor"], "scalar/loss");
  EXPECT_THAT(steps(), ElementsAre(0, 1, 2));
  EXPECT_EQ(run().values<float>(1, "smdebug/reductions/max/by_hand").at(0), 2.0f);
}

}  // namespace
}  // namespace smd
