#include "smd/hook/hook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "smd/base/json.h"
#include "smd/format/file_name.h"
#include "tests/support/recorded_run.h"

namespace smd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

class HookTest : public testing::Test {
 protected:
  HookOptions options() const {
    HookOptions o;
    o.log = log;
    o.clock = clock;
    o.environment = Environment();
    o.storage = storage;
    return o;
  }
  HookOptions saving_every(int64_t interval, bool all = true) const {
    HookOptions o = options();
    o.config.save_all = all;
    o.config.save_config = *SaveConfig::broadcast({.save_interval = interval});
    return o;
  }
  static std::unique_ptr<Hook> make(HookOptions o) {
    auto hook = Hook::create(std::move(o));
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& file : *storage->list("", "")) out.push_back(file.path);
    return out;
  }
  RecordedRun run() const { return RecordedRun(storage); }
  std::vector<Step> steps() const { return run().steps(); }
  format::Index index(Step step, const std::string& worker = "worker_0") const {
    return run().index(step, worker);
  }
  std::vector<std::string> names(Step step) const { return run().names(step); }
  format::Event event(Step step, const std::string& name) const { return run().event(step, name); }
  template <typename T>
  T value(Step step, const std::string& name) const {
    const auto found = event(step, name);
    return found.tensor ? load_le<T>(found.tensor->elements.data()) : T{};
  }
  Json collections(const std::string& worker = "worker_0") const {
    return *parse_json(as_text(*storage::read_all(*storage, format::collections_file_name(worker))),
                       "");
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::shared_ptr<Lines> log = std::make_shared<Lines>();
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1600000000.5);
  const Shape shape{4};
  std::vector<float> values{1, -2, 3, 4};
  TensorView view() const {
    return {.data = values.data(), .dtype = DType::float32, .shape = shape};
  }
};

TEST_F(HookTest, saves_what_its_collections_hold_at_the_steps_they_want) {
  auto hook = make(saving_every(2));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    values[0] = static_cast<float>(i);
    EXPECT_EQ(hook->wants("w"), i % 2 == 0);
    ASSERT_TRUE(hook->save("w", view()).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 2, 4));
  EXPECT_EQ(value<float>(2, "w"), 2.0f);
  EXPECT_EQ(event(2, "w").wall_secs, 1600000000.5);
  EXPECT_EQ(hook->last_saved_step(), 4);
  EXPECT_THAT(files(), Contains("training_job_end.ts"));
  EXPECT_THAT(files(), Contains("collections/000000000/worker_0_collections.json"));
  EXPECT_THAT(files(), Not(Contains("claim.smd")));
  EXPECT_THAT(collections()["collections"]["all"]["tensor_names"], ElementsAre("w"));
}

TEST_F(HookTest, a_step_becomes_visible_when_the_next_one_begins_or_at_end_step) {
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->end_step().ok());
  ASSERT_TRUE(hook->save("late", view()).ok()) << "dropped, not an error";
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("w"));
}

TEST_F(HookTest, steps_that_run_as_one_save_at_the_last_what_any_of_them_saves) {
  auto hook = make(saving_every(3));
  EXPECT_FALSE(hook->is_saved_within(5).has_value()) << "nothing is planned yet";
  std::vector<bool> wanted;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(hook->begin_steps(i == 2 ? 1 : 5).ok());
    wanted.push_back(hook->is_step_saved());
    ASSERT_TRUE(hook->save("w", view()).ok());
    EXPECT_EQ(hook->is_saved_within(5), true);
  }
  EXPECT_FALSE(hook->begin_steps(0).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(wanted, ElementsAre(true, true, false, true));
  EXPECT_THAT(steps(), ElementsAre(4, 9, 15));
  EXPECT_EQ(hook->bill().steps, 16);
}

TEST_F(HookTest, a_twin_is_another_worker_with_the_same_collections) {
  HookOptions o = saving_every(2);
  o.config.include_workers = IncludeWorkers::all;
  o.identify = [] { return Worker{.name = "/d:0", .chief = "/d:0", .count = 2}; };
  auto hook = make(std::move(o));
  auto twin = hook->create_twin({.name = "/d:1", .chief = "/d:0", .count = 2});
  ASSERT_TRUE(twin.ok());
  for (int i = 0; i < 3; ++i) {
    for (Hook* one : {hook.get(), twin->get()}) {
      ASSERT_TRUE(one->begin_step().ok());
      ASSERT_TRUE(one->save("w", view()).ok());
    }
  }
  ASSERT_TRUE((*twin)->close().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(hook->collections().find("all")->include_regex(), ElementsAre(".*"));
  EXPECT_EQ((*twin)->worker().name, "/d:1");
  for (const std::string worker : {"_d-0", "_d-1"}) {
    EXPECT_EQ(collections(worker)["_meta"]["num_workers"], 2) << worker;
    for (Step step : {0, 2}) EXPECT_EQ(index(step, worker).tensors.size(), 1) << worker;
  }
}

TEST_F(HookTest, a_collection_may_be_saved_that_is_included_or_asked_for) {
  HookOptions o = saving_every(10, false);
  o.config.include_collections = {"losses"};
  auto hook = make(std::move(o));
  EXPECT_TRUE(hook->may_save("losses"));
  EXPECT_FALSE(hook->may_save("gradients"));
  ASSERT_TRUE(hook->begin_step().ok());
  const std::vector<std::string> asked = {"gradients"};
  ASSERT_TRUE(hook->collections().create("gradients").ok());
  ASSERT_TRUE(hook->save_more(asked, 1).ok());
  EXPECT_TRUE(hook->may_save("gradients"));
  ASSERT_TRUE(hook->close().ok());
  HookOptions everything = saving_every(1);
  everything.storage = storage::memory_storage();
  EXPECT_TRUE(make(std::move(everything))->may_save("anything"));
}

TEST_F(HookTest, a_cancelled_step_gives_its_number_to_the_next) {
  auto hook = make(saving_every(2));
  hook->set_mode(Mode::train);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->begin_step().ok());
  hook->cancel_step();
  EXPECT_EQ(hook->mode_step(Mode::train), 1);
  ASSERT_TRUE(hook->save("between", view()).ok());
  hook->set_mode(Mode::eval);
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_EQ(hook->step().step, 2);
  EXPECT_EQ(hook->step().mode_step, 0);
  hook->set_mode(Mode::train);
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_EQ(hook->step().mode_step, 2);
  EXPECT_TRUE(hook->is_step_saved());
  ASSERT_TRUE(hook->save("w", view()).ok());
  hook->cancel_step();
  EXPECT_EQ(hook->step().mode_step, 2) << "it holds a tensor";
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(3));
}

TEST_F(HookTest, a_number_of_an_epoch_is_saved_where_its_collection_is_not_due) {
  HookOptions o = saving_every(10, false);
  o.config.include_collections = {"losses", "metrics"};
  auto hook = make(std::move(o));
  hook->collections().find("metrics")->set_save_config(
      std::make_shared<SaveConfig>(*SaveConfig::broadcast({.save_interval = 10, .end_step = 2})));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_undue("loss", view(), Kind::loss).ok());
  ASSERT_TRUE(hook->save_undue("mae", view(), Kind::metric).ok());
  ASSERT_TRUE(hook->save_undue("w", view(), Kind::weight).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(2));
  EXPECT_THAT(names(2), ElementsAre("loss")) << "metrics have ended, weights are not included";
  EXPECT_THAT(collections()["collections"]["losses"]["tensor_names"], ElementsAre("loss"));
}

TEST_F(HookTest, what_comes_after_end_step_does_not_destroy_the_step) {
  const std::vector<std::string> mine = {"mine"};
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->end_step().ok());
  ASSERT_TRUE(hook->save_tensor("late", view(), mine).ok());
  ASSERT_TRUE(hook->save_scalar("between", 1).ok());
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->end_step().ok());
  ASSERT_TRUE(hook->save_scalar("last", 2).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("w"));
  EXPECT_THAT(names(1), ElementsAre("scalar/between"));
  EXPECT_THAT(names(2), ElementsAre("scalar/last"));
}

TEST_F(HookTest, saving_by_hand_into_a_collection_does_not_include_it) {
  const std::vector<std::string> weights = {"weights"};
  HookOptions o = saving_every(1, false);
  auto hook = make(std::move(o));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save_tensor("x", view(), weights).ok());
    ASSERT_TRUE(hook->save("fc.weight", view()).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("x"));
  EXPECT_THAT(names(1), ElementsAre("x"));
}

TEST_F(HookTest, an_empty_collection_of_the_framework_may_be_included) {
  HookOptions o = saving_every(1, false);
  o.builtin_collections.push_back({.name = "layers"});
  o.config.include_collections = {"layers"};
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->collections().create("typo").ok());
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(log->lines, Contains(HasSubstr("'typo' has neither patterns")));
}

TEST_F(HookTest, modes_have_their_own_steps_and_gradients_rest_outside_training) {
  HookOptions o = options();
  o.config.include_collections = {"gradients", "weights"};
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 2});
  auto hook = make(std::move(o));
  for (Mode mode : {Mode::train, Mode::eval}) {
    hook->set_mode(mode);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(hook->begin_step().ok());
      ASSERT_TRUE(hook->save("gradient/fc.weight", view()).ok());
      ASSERT_TRUE(hook->save("fc.weight", view()).ok());
    }
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(names(2), ElementsAre("gradient/fc.weight", "fc.weight"));
  EXPECT_THAT(names(3), ElementsAre("fc.weight"));
  EXPECT_EQ(index(5).mode, Mode::eval);
  EXPECT_EQ(index(5).mode_step, 2);
}

TEST_F(HookTest, the_collections_of_a_tensor_are_united) {
  HookOptions o = options();
  o.config.include_collections = {"a", "b"};
  o.config.collections = {
      {.name = "a",
       .include_regex = {"w"},
       .save_config = *SaveConfig::broadcast({.save_interval = 2}),
       .reduction_config =
           *ReductionConfig::create({.reductions = {"min", "mean"}, .save_shape = true})},
      {.name = "b",
       .include_regex = {"w"},
       .save_config = *SaveConfig::broadcast({.save_interval = 3}),
       .reduction_config = *ReductionConfig::create(
           {.reductions = {"min"}, .abs_norms = {"l1"}, .save_raw_tensor = true})}};
  auto hook = make(std::move(o));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save("w", view()).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 2, 3));
  EXPECT_THAT(names(2), testing::UnorderedElementsAre("smdebug/reductions/mean/w",
                                                      "smdebug/reductions/min/w"));
  EXPECT_THAT(names(0),
              testing::UnorderedElementsAre("smdebug/reductions/mean/w", "smdebug/reductions/min/w",
                                            "smdebug/reductions/abs_l1/w", "w"));
  EXPECT_EQ(value<float>(0, "smdebug/reductions/min/w"), -2.0f);
  EXPECT_EQ(value<float>(0, "smdebug/reductions/abs_l1/w"), 10.0f);
  EXPECT_EQ(event(0, "smdebug/reductions/min/w").tensor->shape, Shape{1});
  ASSERT_EQ(index(2).shapes.size(), 1u);
  EXPECT_EQ(index(2).shapes[0].shape, shape);
  EXPECT_THAT(index(3).shapes, IsEmpty());
}

TEST_F(HookTest, scalars_belong_to_the_step_of_the_call_and_the_last_value_wins) {
  auto hook = make(saving_every(100));
  ASSERT_TRUE(hook->save_scalar("early", 7.0).ok());
  for (int i = 0; i < 4; ++i) {
    hook->set_mode(i < 3 ? Mode::train : Mode::eval);
    ASSERT_TRUE(hook->begin_step().ok());
    if (i == 0) hook->set_mode(Mode::eval);  // selects the mode of the next step only
    ASSERT_TRUE(hook->save_scalar("lr", -1.0).ok());
    ASSERT_TRUE(hook->save_scalar("lr", 0.5 * i, {.wall_secs = 5.0}).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(names(0), ElementsAre("scalar/early", "scalar/lr"));
  EXPECT_THAT(names(2), ElementsAre("scalar/lr"));
  EXPECT_EQ(index(0).mode, Mode::train);
  EXPECT_EQ(value<double>(2, "scalar/lr"), 1.0);
  EXPECT_EQ(event(2, "scalar/lr").wall_secs, 5.0);
  EXPECT_EQ(event(2, "scalar/lr").tensor->shape, Shape{1});
  EXPECT_THAT(collections()["collections"]["scalars"]["tensor_names"],
              ElementsAre("scalar/early", "scalar/lr"));
}

TEST_F(HookTest, a_scalar_without_any_step_lands_in_step_0) {
  auto hook = make(options());
  ASSERT_TRUE(hook->save_scalar("only", 1.0).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0));
  EXPECT_EQ(index(0).mode_step, 0);
}

TEST_F(HookTest, a_late_scalar_does_not_destroy_its_step) {
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->save_scalar("late", 1.0).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("w", "scalar/late"));
}

TEST_F(HookTest, tensors_saved_by_hand_need_not_be_included) {
  HookOptions o = options();
  o.config.include_collections = {"weights"};
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 2});
  auto hook = make(std::move(o));
  const std::vector<std::string> mine = {"mine", "also"};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save_tensor("x", view(), mine).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 2));
  EXPECT_THAT(names(2), ElementsAre("x"));
  EXPECT_THAT(collections()["collections"]["mine"]["tensor_names"], ElementsAre("x"));
  EXPECT_THAT(collections()["collections"]["also"]["tensor_names"], ElementsAre("x"));
}

TEST_F(HookTest, a_tensor_saved_among_the_scalars_is_saved_as_it_is) {
  auto hook = make(saving_every(1, false));
  const std::vector<std::string> scalars = {"scalars"};
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_tensor("x", view(), scalars).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("x"));
}

TEST_F(HookTest, a_new_collection_does_not_end_what_a_nan_started) {
  HookOptions o = options();
  o.config.save_all = true;
  o.config.save_config =
      *SaveConfig::broadcast({.save_interval = 100, .start_step = 1, .when_nan = {"loss"}});
  auto hook = make(std::move(o));
  const std::vector<std::string> mine = {"mine"};
  ASSERT_TRUE(hook->begin_step().ok());
  values[0] = std::nanf("");
  ASSERT_TRUE(hook->save("loss", view()).ok());
  ASSERT_TRUE(hook->save_tensor("x", view(), mine).ok());
  ASSERT_TRUE(hook->save("after", view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("smdebug/when_nan", "loss", "x", "after"));
}

TEST_F(HookTest, strings_are_saved_and_miscounted_ones_refused) {
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step().ok());
  const std::vector<std::string> target = {"default"};
  const std::vector<std::string_view> words = {"a", "b"};
  const int64_t two[] = {2};
  const int64_t three[] = {3};
  ASSERT_TRUE(hook->save_strings("s", words, two, target).ok());
  EXPECT_EQ(hook->save_strings("s", words, three, target).error().code,
            ErrorCode::invalid_argument);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(event(0, "s").tensor->strings, ElementsAre("a", "b"));
}

TEST_F(HookTest, a_kind_puts_a_tensor_into_its_collection) {
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1});
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("objective", view(), Kind::loss).ok());
  ASSERT_TRUE(hook->save("other", view(), Kind::weight).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("objective"));
  EXPECT_THAT(collections()["collections"]["weights"]["tensor_names"], ElementsAre("other"));
}

TEST_F(HookTest, an_included_built_in_collection_gets_its_tensors_by_kind_from_the_first_step_on) {
  HookOptions o = options();
  o.config.include_collections = {"metrics", "layers"};
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->save("early", view()).ok());
  EXPECT_THAT(log->lines, Contains(HasSubstr("'early' was saved before the first step")));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("accuracy", view(), Kind::metric).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("accuracy"));
}

TEST_F(HookTest, collections_added_later_take_part_from_the_next_step_on) {
  auto hook = make(saving_every(1, false));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("relu_output_0", view()).ok());
  ASSERT_TRUE((*hook->collections().get("losses"))->include("relu").ok());
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("relu_output_0", view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(1));
}

TEST_F(HookTest, a_tensor_with_several_names_is_saved_as_each_name_is_wanted) {
  HookOptions o = saving_every(1, false);
  o.config.include_collections = {"raw", "reduced"};
  const auto hook = make(std::move(o));
  (*hook->collections().create("raw"))->add_tensor_name("a");
  (*hook->collections().create("raw"))->add_tensor_name("c");
  const auto reduced = *hook->collections().create("reduced");
  reduced->add_tensor_name("b");
  reduced->set_reduction_config(
      std::make_shared<ReductionConfig>(*ReductionConfig::create({.reductions = {"max"}})));
  const std::vector<std::string> names{"unwanted", "a", "b", "c"};
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_named(names, view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(this->names(0), ElementsAre("smdebug/reductions/max/b", "a", "c"));
  const auto found = index(0).tensors;
  EXPECT_EQ(found[1].offset, found[2].offset);
  EXPECT_EQ(value<float>(0, "c"), 1);
}

TEST_F(HookTest, a_job_that_goes_on_has_no_end_marker) {
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step(Step{0}).ok());
  ASSERT_TRUE(hook->save("x", view()).ok());
  ASSERT_TRUE(hook->close({.goes_on = true}).ok());
  EXPECT_THAT(files(), Not(Contains("training_job_end.ts")));
  hook = make(saving_every(1));  // not refused
  ASSERT_TRUE(hook->begin_step(Step{0}).ok());
  ASSERT_TRUE(hook->save("y", view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(files(), Contains("training_job_end.ts"));
  EXPECT_THAT(names(0), ElementsAre("y"));
}

TEST_F(HookTest, only_the_chief_saves_unless_all_are_asked) {
  HookOptions o = saving_every(1);
  o.identify = [] { return Worker{.name = "worker_1", .count = 2}; };
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_FALSE(hook->wants("w"));
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(HookTest, two_workers_share_a_directory) {
  for (int rank : {0, 1}) {
    HookOptions o = saving_every(1);
    o.config.include_workers = IncludeWorkers::all;
    o.environment = Environment({{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}});
    auto hook = make(std::move(o));
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save("w", view()).ok());
    ASSERT_TRUE(hook->close().ok());
    EXPECT_EQ(storage->stat("training_job_end.ts").ok(), rank == 1);
  }
  EXPECT_EQ(index(0, "worker_1").tensors.size(), 1u);
  EXPECT_EQ(collections("worker_1")["_meta"]["num_workers"], 2);
}

TEST_F(HookTest, a_finished_job_is_not_overwritten) {
  ASSERT_TRUE(make(saving_every(1))->close().ok());
  auto again = Hook::create(saving_every(1));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::closed);
}

TEST_F(HookTest, in_a_managed_job_the_platform_writes_the_end_marker) {
  HookOptions o = saving_every(1);
  o.environment = Environment(Environment::Variables{{"TRAINING_JOB_NAME", "j"}});
  ASSERT_TRUE(make(std::move(o))->close().ok());
  EXPECT_THAT(files(), ElementsAre("collections/000000000/worker_0_collections.json"));
}

TEST_F(HookTest, a_dry_run_writes_nothing_and_says_what_it_would) {
  HookOptions o = saving_every(1);
  o.config.dry_run = true;
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->save_scalar("x", 1.0).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_THAT(log->lines, Contains(HasSubstr("'w' would be saved")));
}

TEST_F(HookTest, closing_twice_is_fine_and_saving_afterwards_is_not) {
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->close().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(hook->save("w", view()).error().code, ErrorCode::closed);
  EXPECT_EQ(hook->save_scalar("w", 1.0).error().code, ErrorCode::closed);
  EXPECT_EQ(hook->begin_step().error().code, ErrorCode::closed);
}

TEST_F(HookTest, a_nan_in_a_watched_tensor_saves_the_rest_of_its_step_and_the_next) {
  HookOptions o = options();
  o.config.save_all = true;
  o.config.save_config =
      *SaveConfig::broadcast({.save_interval = 100, .start_step = 1, .when_nan = {"loss"}});
  auto hook = make(std::move(o));
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    EXPECT_TRUE(hook->wants("loss"));
    ASSERT_TRUE(hook->save("before", view()).ok());
    values[2] = i >= 3 ? std::numeric_limits<float>::quiet_NaN() : 0.0f;
    ASSERT_TRUE(hook->save("loss", view()).ok());
    ASSERT_TRUE(hook->save("after", view()).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(3, 4)) << "a NaN that stays does not trigger again";
  EXPECT_THAT(names(3), ElementsAre("smdebug/when_nan", "loss", "after"));
  EXPECT_THAT(event(3, "smdebug/when_nan").tensor->strings, ElementsAre("loss"));
  EXPECT_THAT(names(4), ElementsAre("before", "loss", "after"));
  EXPECT_THAT(log->lines, Contains(HasSubstr("'loss' holds a NaN at step 3")));
}

TEST_F(HookTest, a_scalar_can_be_watched_for_nan) {
  HookOptions o = options();
  o.config.save_all = true;
  o.config.save_config =
      *SaveConfig::broadcast({.save_interval = 100, .start_step = 1, .when_nan = {"loss"}});
  auto hook = make(std::move(o));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save_scalar("loss", i == 1 ? std::nan("") : 1.0).ok());
    ASSERT_TRUE(hook->save("w", view()).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("scalar/loss"));
  EXPECT_THAT(names(1), ElementsAre("smdebug/when_nan", "w", "scalar/loss"));
  EXPECT_THAT(names(2), ElementsAre("w", "scalar/loss"));
}

TEST_F(HookTest, a_watched_name_that_never_comes_is_reported_with_a_near_one) {
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.when_nan = {"los"}});
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("loss", view()).ok());
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_THAT(log->lines,
              Contains(testing::AllOf(HasSubstr("'los'"), HasSubstr("Did you mean 'loss'?"))));
}

TEST_F(HookTest, an_included_collection_without_content_is_a_mistake) {
  HookOptions o = options();
  o.config.include_collections = {"typo"};
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->collections().create("typo").ok());
  ASSERT_TRUE(hook->collections().create("harmless").ok());
  auto begun = hook->begin_step();
  ASSERT_FALSE(begun.ok());
  EXPECT_THAT(begun.error().message, HasSubstr("'typo'"));
}

TEST_F(HookTest, a_search_that_is_given_up_is_warned_of) {
  HookOptions o = saving_every(1, false);
  o.config.include_regex = {"(a+)+$"};
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save(std::string(200, 'a') + "b", view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(log->lines, Contains(HasSubstr("was given up")));
}

TEST_F(HookTest, unknown_collections_are_warned_of) {
  HookOptions o = options();
  o.config.include_collections = {"wieghts"};
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_THAT(log->lines, Contains(HasSubstr("Did you mean 'weights'?")));
}

TEST_F(HookTest, empty_tensors_leave_their_shape_only) {
  HookOptions o = saving_every(1);
  o.config.reduction_config = *ReductionConfig::create(
      {.reductions = {"min"}, .save_raw_tensor = true, .save_shape = true});
  auto hook = make(std::move(o));
  const Shape empty = {0, 3};
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("e", {.data = nullptr, .dtype = DType::float32, .shape = empty}).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), IsEmpty());
  EXPECT_EQ(index(0).shapes[0].shape, empty);
  EXPECT_EQ(index(0).event_file, "");
}

TEST_F(HookTest, a_tensor_too_large_for_the_format_is_dropped_with_a_message) {
  auto hook = make(saving_every(1));
  const Shape huge = {int64_t{1} << 30};
  ASSERT_TRUE(hook->begin_step().ok());
  // Never read: the size alone decides.
  ASSERT_TRUE(
      hook->save("huge", {.data = values.data(), .dtype = DType::float32, .shape = huge}).ok());
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("w"));
  EXPECT_THAT(log->lines, Contains(HasSubstr("2 GiB")));
}

TEST_F(HookTest, strict_mode_gives_our_failures_back) {
  HookOptions o = saving_every(1);
  o.environment = Environment(Environment::Variables{{"SMDEBUG_STRICT", "1"}});
  auto hook = make(std::move(o));
  const Shape huge = {int64_t{1} << 30};
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_EQ(hook->save("huge", {.data = values.data(), .dtype = DType::float32, .shape = huge})
                .error()
                .code,
            ErrorCode::unsupported);
}

TEST_F(HookTest, stands_still_in_a_forked_child) {
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->begin_step().ok());
  const pid_t child = fork();
  if (child == 0) {
    bool ok = hook->begin_step().ok() && hook->save("c", view()).ok() && !hook->wants("c") &&
              hook->save_scalar("s", 1.0).ok() && hook->close().ok();
    hook.reset();
    _exit(ok ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 1));
}

TEST_F(HookTest, an_interrupted_job_goes_on_after_its_last_checkpoint) {
  const std::string folder = testing::TempDir() + "/smd_hook_" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder + "/checkpoints");
  std::ofstream(folder + "/config.json") << R"({"LocalPath": ")" << folder << R"(/checkpoints"})";
  const auto resumable = [&] {
    HookOptions o = saving_every(10);
    o.environment = Environment(
        {{"CHECKPOINT_CONFIG_FILE_PATH", folder + "/config.json"}, {"TRAINING_JOB_NAME", "spot"}});
    return o;
  };
  auto run = [&](int count) {
    auto hook = make(resumable());
    hook->set_mode(Mode::train);
    for (int i = 0; i < count; ++i) {
      clock->advance(2);
      ASSERT_TRUE(hook->begin_step().ok());
      ASSERT_TRUE(hook->save("w", view()).ok());
      if (i == count - 2)
        std::ofstream(folder + "/checkpoints/" + std::to_string(hook->step().step)) << "c";
    }
    ASSERT_TRUE(hook->close().ok());
  };
  run(25);  // the checkpoint of step 23 is noticed when step 24 begins
  EXPECT_THAT(steps(), ElementsAre(0, 10, 20));
  auto next = make(resumable());
  EXPECT_EQ(next->step().step, 23);
  EXPECT_EQ(next->training_run(), 1);
  next.reset();
  run(10);
  EXPECT_THAT(steps(), ElementsAre(0, 10, 20, 30));
  EXPECT_EQ(index(30).mode_step, 30);
  std::ofstream(folder + "/checkpoints/metadata.json") << "[{";
  EXPECT_EQ(make(resumable())->step().step, 30) << "nothing recorded is written again";
  EXPECT_THAT(log->lines, Contains(HasSubstr("steps go on with 31")));
  std::filesystem::remove_all(folder);
}

// A managed job with a folder for its metrics.
class ManagedJob : public HookTest {
 protected:
  ManagedJob() { std::filesystem::remove_all(folder); }
  ~ManagedJob() override { std::filesystem::remove_all(folder); }
  HookOptions managed(int64_t interval) const {
    HookOptions o = saving_every(interval);
    o.environment = Environment(
        {{"TRAINING_JOB_NAME", "job"}, {"SAGEMAKER_METRICS_DIRECTORY", folder + "/metrics"}});
    return o;
  }
  std::vector<std::string> metrics() const {
    std::ifstream in(folder + "/metrics/" + std::to_string(getpid()) + ".json");
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  const std::string folder = testing::TempDir() + "/smd_managed_" + std::to_string(getpid());
};

TEST_F(ManagedJob, metrics_are_scalars_by_wish_and_means_of_losses) {
  auto hook = make(managed(2));
  const std::vector<std::string> both = {"losses", "metrics"};
  hook->set_mode(Mode::train);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save_scalar("lr", 0.5, {.sm_metric = true}).ok());
    ASSERT_TRUE(hook->save_scalar("private", 0.5).ok());
    ASSERT_TRUE(hook->save("loss", view()).ok());
    ASSERT_TRUE(hook->save("weight", view()).ok());
  }
  hook->set_mode(Mode::eval);
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_tensor("in_two", view(), both).ok());
  ASSERT_TRUE(hook->close().ok());
  const auto line = [](const char* name, const char* value, int step) {
    return std::string(R"({"MetricName": ")") + name + R"(", "Value": )" + value +
           R"(, "Timestamp": 1600000000.5, "IterationNumber": )" + std::to_string(step) + "}";
  };
  EXPECT_THAT(metrics(),
              ElementsAre(line("loss_TRAIN", "1.5", 0), line("scalar/lr_TRAIN", "0.5", 0),
                          line("scalar/lr_TRAIN", "0.5", 1), line("loss_TRAIN", "1.5", 2),
                          line("scalar/lr_TRAIN", "0.5", 2), line("in_two_EVAL", "1.5", 0)));
  EXPECT_THAT(files(), Not(Contains("training_job_end.ts")));
}

TEST_F(ManagedJob, a_step_shows_its_metrics_before_the_job_ends) {
  auto hook = make(managed(1));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_scalar("lr", 1, {.sm_metric = true}).ok());
  ASSERT_TRUE(hook->end_step().ok());
  for (int i = 0; metrics().empty() && i < 1'000'000; ++i) ::usleep(10);
  EXPECT_EQ(metrics().size(), 1u);
  ASSERT_TRUE(hook->close().ok());
}

TEST_F(ManagedJob, times_that_the_platform_refuses_are_replaced) {
  auto hook = make(managed(1));
  ASSERT_TRUE(hook->begin_step().ok());
  const double now = clock->unix_secs();
  ASSERT_TRUE(
      hook->save_scalar("old", 1, {.sm_metric = true, .wall_secs = now - 14.5 * 86400}).ok());
  ASSERT_TRUE(hook->save_scalar("new", 1, {.sm_metric = true, .wall_secs = now + 7300}).ok());
  ASSERT_TRUE(hook->save_scalar("well", 1, {.sm_metric = true, .wall_secs = now - 86400}).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(metrics(), ElementsAre(HasSubstr("1600000000.5"), HasSubstr("1600000000.5"),
                                     HasSubstr("1599913600.5")));
  EXPECT_EQ(event(0, "scalar/old").wall_secs, now - 14.5 * 86400) << "the run keeps what was said";
  EXPECT_THAT(log->lines, Contains(HasSubstr("'scalar/old' is more than 14 days old")));
}

TEST_F(ManagedJob, numbers_that_json_does_not_know_stay_in_the_run) {
  auto hook = make(managed(1));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_scalar("bad", std::nan(""), {.sm_metric = true}).ok());
  ASSERT_TRUE(hook->save_scalar("good", 2, {.sm_metric = true}).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(metrics(), ElementsAre(HasSubstr("scalar/good_GLOBAL")));
  EXPECT_THAT(names(0), Contains("scalar/bad"));
  EXPECT_THAT(log->lines, Contains(HasSubstr("'scalar/bad' is NaN")));
}

TEST_F(ManagedJob, metrics_that_cannot_be_written_harm_nothing) {
  HookOptions o = managed(1);
  auto variables = Environment::Variables{{"TRAINING_JOB_NAME", "job"},
                                          {"SAGEMAKER_METRICS_DIRECTORY", "/proc/nowhere"},
                                          {"SMDEBUG_STRICT", "1"}};
  o.environment = Environment(variables);
  auto hook = make(std::move(o));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save_scalar("lr", 1, {.sm_metric = true}).ok());
  }
  EXPECT_TRUE(hook->close().ok());
  EXPECT_THAT(steps(), ElementsAre(0, 1, 2));
  EXPECT_THAT(log->lines, Contains(HasSubstr("The metrics file cannot be opened")));
}

TEST_F(ManagedJob, outside_of_one_there_is_no_metrics_file) {
  HookOptions o = managed(1);
  o.environment =
      Environment(Environment::Variables{{"SAGEMAKER_METRICS_DIRECTORY", folder + "/metrics"}});
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_scalar("lr", 1, {.sm_metric = true}).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(ManagedJob, the_tensorboard_folder_comes_from_the_file_then_from_the_configuration) {
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/tensorboard.json";
  const auto dir = [&](const char* content, std::optional<std::string> own, bool exports,
                       bool in_job = true) {
    std::filesystem::remove(file);
    if (content != nullptr) std::ofstream(file) << content;
    HookOptions o = options();
    Environment::Variables variables = {{"TENSORBOARD_CONFIG_FILE_PATH", file}, {"HOME", "/h"}};
    if (in_job) variables["TRAINING_JOB_NAME"] = "job";
    o.environment = Environment(variables);
    o.config.out_dir = "/out";
    o.config.tensorboard_dir = own;
    o.config.export_tensorboard = exports;
    o.storage = storage::memory_storage();
    return make(std::move(o))->config().tensorboard_dir.value_or("none");
  };
  const char* sample = R"({ "LocalPath": "/my/tensorboard/path" })";
  for (bool in_job : {true, false}) {
    EXPECT_EQ(dir(sample, std::nullopt, false, in_job), "/my/tensorboard/path");
    EXPECT_EQ(dir(sample, "/own", true, in_job), "/my/tensorboard/path");
    EXPECT_EQ(dir(nullptr, "/own", false, in_job), "/own");
    EXPECT_EQ(dir(nullptr, "~/own", false, in_job), "/h/own");
    EXPECT_EQ(dir(nullptr, std::nullopt, true, in_job), "/out/tensorboard");
    EXPECT_EQ(dir(nullptr, std::nullopt, false, in_job), "none");
  }
  EXPECT_EQ(dir(R"({"S3OutputPath": "s3://b"})", std::nullopt, false),
            "/opt/ml/output/tensorboard");
  EXPECT_EQ(dir("{", "/own", false), "/own");
  EXPECT_THAT(log->lines, Contains(HasSubstr("TensorBoard configuration cannot be used")));
}

TEST_F(ManagedJob, a_state_belongs_to_the_step_that_wrote_the_checkpoint) {
  std::filesystem::create_directories(folder + "/checkpoints");
  std::ofstream(folder + "/config.json") << R"({"LocalPath": ")" << folder << R"(/checkpoints"})";
  // Each look takes a millisecond, so the next one is due ten milliseconds later.
  class SlowClock final : public Clock {
   public:
    double unix_secs() const override { return 1600000000; }
    std::chrono::steady_clock::time_point now() const override {
      return std::chrono::steady_clock::time_point(std::chrono::milliseconds(calls_++));
    }

   private:
    mutable int calls_ = 0;
  };
  HookOptions o = saving_every(1);
  o.clock = std::make_shared<SlowClock>();
  o.environment =
      Environment(Environment::Variables{{"CHECKPOINT_CONFIG_FILE_PATH", folder + "/config.json"}});
  auto hook = make(std::move(o));
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    if (i == 5) std::ofstream(folder + "/checkpoints/model") << "x";
  }
  std::vector<std::string> problems;
  const auto state = ResumeFile(folder + "/checkpoints").load(problems);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->latest_step_seen, 5);
}

TEST_F(ManagedJob, a_checkpoint_configuration_that_makes_no_sense_is_told) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << "{";
  HookOptions o = saving_every(1);
  o.environment =
      Environment(Environment::Variables{{"CHECKPOINT_CONFIG_FILE_PATH", folder + "/config.json"}});
  EXPECT_EQ(make(std::move(o))->step().step, -1);
  EXPECT_THAT(log->lines, Contains(HasSubstr("this job cannot be resumed")));
}

TEST_F(HookTest, comes_from_a_json_file) {
  const std::string path = testing::TempDir() + "/smd_hook_" + std::to_string(getpid()) + ".json";
  std::ofstream(path)
      << R"({"LocalPath": "/unused", "HookParameters": {"save_interval": "3", "include_regex": "^x",
    "exclude_regex": "y$", "nonsense": 1}, "CollectionConfigurations": [{"CollectionName": "weights",
    "CollectionParameters": {"save_interval": 2, "reductions": "l2"}},]})";
  auto made = Hook::from_json(path, options());
  ASSERT_TRUE(made.ok()) << made.error().message;
  auto hook = std::move(*made);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_TRUE(hook->save("x", view()).ok());
    ASSERT_TRUE(hook->save("xy", view()).ok());
    ASSERT_TRUE(hook->save("weight", view()).ok());
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(3), ElementsAre("x"));
  EXPECT_THAT(names(2), ElementsAre("smdebug/reductions/l2/weight"));
  EXPECT_THAT(log->lines, Contains(HasSubstr("nonsense")));
  EXPECT_THAT(log->lines, Not(Contains(HasSubstr("rules"))));
  std::ofstream(path) << R"({"rules": ["VanishingGradient"]})";
  HookOptions other = options();
  other.storage = storage::memory_storage();
  EXPECT_TRUE(Hook::from_json(path, std::move(other)).ok());
  EXPECT_THAT(log->lines, Contains(HasSubstr("rules of the configuration are not evaluated")));
  EXPECT_EQ(Hook::from_json("/no/such/file.json", options()).error().code, ErrorCode::not_found);
  std::filesystem::remove(path);
}

TEST_F(HookTest, bad_arguments_come_back_as_errors) {
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step(5).ok());
  EXPECT_EQ(hook->begin_step(5).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(hook->step().step, 5);
  EXPECT_EQ(hook->save("", view()).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(hook->save_scalar("", 1.0).error().code, ErrorCode::invalid_argument);
  const Shape bad = {-1};
  EXPECT_EQ(hook->save("x", {.data = values.data(), .shape = bad}).error().code,
            ErrorCode::invalid_argument);
  HookOptions nowhere = options();
  nowhere.storage = nullptr;
  EXPECT_EQ(Hook::create(std::move(nowhere)).error().code, ErrorCode::invalid_argument);
  HookOptions pattern = options();
  pattern.config.include_regex = {"("};
  EXPECT_EQ(Hook::create(std::move(pattern)).error().code, ErrorCode::invalid_argument);
}

TEST_F(HookTest, keeps_an_ended_step_when_more_is_saved_before_the_next) {
  const std::vector<std::string> custom{"custom"};
  auto hook = make(saving_every(1));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save("w", view()).ok());
  ASSERT_TRUE(hook->end_step().ok());
  ASSERT_TRUE(hook->save_scalar("between", 1.0).ok());
  ASSERT_TRUE(hook->save_tensor("late", view(), custom).ok());
  EXPECT_THAT(log->lines, Contains(HasSubstr("'late' was saved between two steps")));
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->end_step().ok());
  ASSERT_TRUE(hook->save_scalar("after", 2.0).ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(names(0), ElementsAre("w"));
  EXPECT_THAT(names(1), ElementsAre("scalar/between"));
  EXPECT_THAT(names(2), ElementsAre("scalar/after"));
}

TEST_F(HookTest, stores_numbers_and_shapes_that_the_caller_has_worked_out) {
  HookOptions o = saving_every(2);
  o.config.reduction_config =
      *ReductionConfig::create({.reductions = {"min", "mean"}, .save_shape = true});
  auto hook = make(std::move(o));
  EXPECT_TRUE(hook->wanted("w").empty());  // no step yet
  const std::vector<std::pair<std::string, Number>> numbers{
      {"min", Number::real(DType::float32, -2)}, {"max", Number::real(DType::float32, 4)}};
  const Shape whole{3, 5};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    EXPECT_EQ(hook->wanted("w").reductions.size(), i == 0 ? 2 : 0);
    ASSERT_TRUE(hook->save_reductions("w", numbers).ok());
    ASSERT_TRUE(hook->save_shape("w", whole).ok());
  }
  const std::vector<std::pair<std::string, Number>> unknown{
      {"mim", Number::real(DType::float32, 1)}};
  EXPECT_EQ(hook->save_reductions("w", unknown).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(hook->save_shape("w", Shape{-1}).error().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(hook->save_reductions("w", numbers).error().code, ErrorCode::closed);
  EXPECT_THAT(steps(), ElementsAre(0));
  EXPECT_THAT(names(0), ElementsAre("smdebug/reductions/min/w"));  // nobody wanted max
  EXPECT_EQ(value<float>(0, "smdebug/reductions/min/w"), -2.0f);
  ASSERT_EQ(index(0).shapes.size(), 1U);
  EXPECT_EQ(index(0).shapes[0].shape, whole);
}

}  // namespace
}  // namespace smd
