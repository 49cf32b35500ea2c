#include "smd/hook/ticket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <map>

#include "smd/hook/hook.h"
#include "tests/support/recorded_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

ReductionConfig reductions(std::vector<std::string> names) {
  return *ReductionConfig::create({.reductions = std::move(names)});
}

// One hook is given names and its twin in another place tickets: both must do the same.
class TicketTest : public testing::Test {
 protected:
  struct Side {
    std::shared_ptr<storage::Storage> storage = storage::memory_storage();
    std::shared_ptr<Lines> log = std::make_shared<Lines>();
    std::unique_ptr<Hook> hook;
    bool has_tickets = false;
    std::map<std::string, Ticket> tickets;

    Ticket& ticket(const std::string& name, Kind kind) {
      return tickets.try_emplace(name, name, kind).first->second;
    }
    void save(const std::string& name, const TensorView& view, Kind kind = Kind::automatic) {
      const Status saved =
          has_tickets ? hook->save(ticket(name, kind), view) : hook->save(name, view, kind);
      EXPECT_TRUE(saved.ok()) << saved.error().message;
    }
    bool wants(const std::string& name) {
      return has_tickets ? hook->wants(ticket(name, Kind::automatic)) : hook->wants(name);
    }
    Collection& collection(std::string_view name) { return **hook->collections().create(name); }
    std::map<std::string, std::string> files() const {
      std::map<std::string, std::string> out;
      for (const auto& file : *storage->list("", "")) {
        out[file.path] = as_text(*storage::read_all(*storage, file.path));
      }
      return out;
    }
    RecordedRun run() const { return RecordedRun(storage); }
  };

  static HookOptions with_reductions(int64_t interval = 1) {
    HookOptions o;
    o.config.save_all = true;
    o.config.save_config = *SaveConfig::broadcast({.save_interval = interval});
    o.config.reduction_config = reductions({"min", "max"});
    return o;
  }
  void start(const HookOptions& given) {
    for (Side* side : {&named, &ticketed}) {
      HookOptions o = given;
      o.log = side->log;
      o.clock = std::make_shared<ManualClock>(1600000000.5);
      o.environment = Environment();
      o.storage = side->storage;
      side->hook = std::move(*Hook::create(std::move(o)));
    }
    ticketed.has_tickets = true;
  }
  // The same on both sides.
  template <typename F>
  void both(F&& f) {
    f(named);
    f(ticketed);
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) {
      both([&](Side& side) {
        ASSERT_TRUE(side.hook->begin_step().ok());
        for (const char* name : {"a", "b", "c"}) side.save(name, view());
      });
    }
  }
  void expect_the_same() {
    both([](Side& side) { EXPECT_TRUE(side.hook->close().ok()); });
    EXPECT_EQ(named.files(), ticketed.files());
    EXPECT_EQ(named.log->lines, ticketed.log->lines);
    EXPECT_EQ(named.hook->bill().tensors, ticketed.hook->bill().tensors);
    EXPECT_EQ(named.hook->bill().bytes, ticketed.hook->bill().bytes);
  }

  Side named, ticketed;
  const Shape shape{4};
  std::vector<float> values{1, -2, 3, 4};
  TensorView view() const {
    return {.data = values.data(), .dtype = DType::float32, .shape = shape};
  }
};

TEST_F(TicketTest, saves_the_same_as_the_name) {
  start(with_reductions(2));
  for (int i = 0; i < 5; ++i) {
    values[0] = static_cast<float>(10 * i);
    steps(1);
    both([&](Side& side) { EXPECT_EQ(side.wants("a"), i % 2 == 0); });
  }
  expect_the_same();
  EXPECT_THAT(ticketed.run().steps(), ElementsAre(0, 2, 4));
  EXPECT_EQ(ticketed.run().values<float>(4, "smdebug/reductions/max/c").at(0), 40.0f);
}

TEST_F(TicketTest, knows_when_a_collection_has_changed) {
  start(with_reductions());
  steps(2);
  both([](Side& side) { ASSERT_TRUE(side.collection("all").exclude("b").ok()); });
  both([&](Side& side) { EXPECT_FALSE(side.wants("b")) << "at once, not at the next step"; });
  both([&](Side& side) { side.save("b", view()); });
  steps(1);
  both([](Side& side) { ASSERT_TRUE(side.collection("all").set_exclude_regex({"c"}).ok()); });
  steps(1);
  expect_the_same();
  const auto saved = [&](Step step) { return ticketed.run().names(step); };
  EXPECT_THAT(saved(2),
              UnorderedElementsAre("smdebug/reductions/min/a", "smdebug/reductions/max/a",
                                   "smdebug/reductions/min/c", "smdebug/reductions/max/c"));
  EXPECT_THAT(saved(3),
              UnorderedElementsAre("smdebug/reductions/min/a", "smdebug/reductions/max/a",
                                   "smdebug/reductions/min/b", "smdebug/reductions/max/b"));
}

TEST_F(TicketTest, knows_when_other_reductions_are_wanted) {
  start(with_reductions());
  steps(2);
  both([](Side& side) {
    side.collection("all").set_reduction_config(
        std::make_shared<ReductionConfig>(reductions({"mean"})));
  });
  steps(2);
  expect_the_same();
  EXPECT_THAT(ticketed.run().names(3),
              ElementsAre("smdebug/reductions/mean/a", "smdebug/reductions/mean/b",
                          "smdebug/reductions/mean/c"));
}

TEST_F(TicketTest, knows_when_the_plan_is_another) {
  start(with_reductions());
  steps(2);
  // A collection that was not there, then one that takes the place of another.
  both([&](Side& side) {
    const std::string target[] = {"mine"};
    ASSERT_TRUE(side.hook->save_tensor("by hand", view(), target).ok());
    side.save("a", view());
  });
  steps(1);
  both([](Side& side) {
    auto replaced = std::make_shared<Collection>("all");
    ASSERT_TRUE(replaced->include("a").ok());
    replaced->set_reduction_config(std::make_shared<ReductionConfig>(reductions({"mean"})));
    ASSERT_TRUE(side.hook->collections().add(std::move(replaced)).ok());
  });
  steps(2);
  both([](Side& side) {
    ASSERT_TRUE(side.hook->save_more(std::vector<std::string>{"mine"}, 2).ok());
  });
  steps(2);
  expect_the_same();
  EXPECT_THAT(ticketed.run().names(4), ElementsAre("smdebug/reductions/mean/a"));
}

TEST_F(TicketTest, knows_the_mode) {
  HookOptions o;
  o.config.include_collections = {"gradients", "weights"};
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 2});
  start(o);
  for (int i = 0; i < 8; ++i) {
    both([&](Side& side) {
      side.hook->set_mode(i % 3 == 0 ? Mode::eval : Mode::train);
      ASSERT_TRUE(side.hook->begin_step().ok());
      side.save("gradient/fc.weight", view());
      side.save("fc.weight", view());
    });
  }
  expect_the_same();
  EXPECT_THAT(ticketed.run().names(0), ElementsAre("fc.weight")) << "of an evaluation";
  EXPECT_THAT(ticketed.run().names(1), ElementsAre("gradient/fc.weight", "fc.weight"));
}

TEST_F(TicketTest, collections_with_steps_of_their_own_take_turns) {
  HookOptions o;
  o.config.include_collections = {"x", "y"};
  o.config.collections = {{.name = "x",
                           .include_regex = {"a|b"},
                           .save_config = *SaveConfig::broadcast({.save_interval = 2}),
                           .reduction_config = reductions({"min"})},
                          {.name = "y",
                           .include_regex = {"b|c"},
                           .save_config = *SaveConfig::broadcast({.save_interval = 3}),
                           .reduction_config = reductions({"max"})}};
  start(o);
  steps(12);
  expect_the_same();
  EXPECT_THAT(ticketed.run().names(2),
              ElementsAre("smdebug/reductions/min/a", "smdebug/reductions/min/b"));
  EXPECT_THAT(ticketed.run().names(3),
              ElementsAre("smdebug/reductions/max/b", "smdebug/reductions/max/c"));
}

TEST_F(TicketTest, takes_a_tensor_of_another_type_and_shape) {
  HookOptions o = with_reductions();
  o.config.reduction_config = *ReductionConfig::create(
      {.reductions = {"min", "max"}, .save_raw_tensor = true, .save_shape = true});
  start(o);
  steps(1);
  const std::vector<int64_t> integers{7, -9, 5, 6, 1, 2};
  const Shape other{2, 3};
  const TensorView longs{.data = integers.data(), .dtype = DType::int64, .shape = other};
  const Shape none{0};
  const TensorView empty{.data = nullptr, .dtype = DType::float32, .shape = none};
  both([&](Side& side) {
    ASSERT_TRUE(side.hook->begin_step().ok());
    side.save("a", longs);
    side.save("b", empty);
    side.save("c", view());
  });
  expect_the_same();
  EXPECT_EQ(ticketed.run().values<int64_t>(1, "smdebug/reductions/min/a").at(0), -9);
  EXPECT_EQ(ticketed.run().values<int64_t>(1, "a").size(), 6u);
}

TEST_F(TicketTest, puts_the_tensor_into_the_collection_of_its_kind) {
  HookOptions o;
  o.config.include_collections = {"losses", "layers"};
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1});
  start(o);
  for (int i = 0; i < 6; ++i) {
    both([&](Side& side) {
      ASSERT_TRUE(side.hook->begin_step().ok());
      if (i == 2) {
        ASSERT_TRUE(side.collection("losses").remove_tensor_name("objective"));
      }
      if (i == 4) {
        ASSERT_TRUE(side.hook->collections().add(std::make_shared<Collection>("losses")).ok());
      }
      side.save("objective", view(), Kind::loss);
      side.save("hidden", view(), Kind::layer);
      EXPECT_TRUE(side.collection("losses").has_tensor_name("objective")) << i;
    });
  }
  expect_the_same();
  EXPECT_THAT(ticketed.run().names(3), ElementsAre("objective", "hidden"));
}

TEST_F(TicketTest, names_join_a_collection_when_something_of_it_is_saved) {
  HookOptions o;
  o.config.save_all = true;
  o.config.save_config =
      *SaveConfig::broadcast({.save_interval = 100, .start_step = 1, .when_nan = {"b"}});
  start(o);
  steps(2);
  both([](Side& side) { EXPECT_THAT(side.collection("all").tensor_names(), IsEmpty()); });
  values[1] = std::numeric_limits<float>::quiet_NaN();
  both([](Side& side) { EXPECT_TRUE(side.wants("b")); });
  both([](Side& side) { EXPECT_FALSE(side.wants("c")); });
  steps(3);
  expect_the_same();
  EXPECT_THAT(ticketed.run().names(2), ElementsAre("smdebug/when_nan", "b", "c"));
  EXPECT_THAT(ticketed.run().names(3), ElementsAre("a", "b", "c"));
}

TEST_F(TicketTest, the_first_bad_tensor_has_its_past) {
  for (const bool every_step : {false, true}) {
    HookOptions o = with_reductions(2);
    o.config.first_bad_tensor = every_step;
    named = {};
    ticketed = {};
    values[2] = 3;
    start(o);
    steps(5);
    values[2] = std::numeric_limits<float>::infinity();
    steps(3);
    expect_the_same();
    const auto text = ticketed.files().at("findings/first_bad_tensor_worker_0.json");
    EXPECT_THAT(text, testing::HasSubstr("\"before\""));
  }
}

TEST_F(TicketTest, the_flight_recorder_keeps_every_step) {
  HookOptions o = with_reductions(100);
  o.config.flight_recorder = 3;
  start(o);
  steps(8);
  both([](Side& side) { ASSERT_TRUE(side.hook->dump_flight_recorder("by hand").ok()); });
  steps(2);
  expect_the_same();
  EXPECT_THAT(ticketed.run().steps(), ElementsAre(0, 5, 6, 7));
}

TEST_F(TicketTest, is_good_for_several_hooks) {
  start(with_reductions());
  HookOptions o;
  o.config.include_collections = {"other"};
  o.config.collections = {{.name = "other",
                           .include_regex = {"a"},
                           .save_config = *SaveConfig::broadcast({.save_interval = 2}),
                           .reduction_config = reductions({"mean"})}};
  o.environment = Environment();
  o.storage = storage::memory_storage();
  auto other = std::move(*Hook::create(o));
  for (int i = 0; i < 4; ++i) {
    steps(1);
    ASSERT_TRUE(other->begin_step().ok());
    for (const char* name : {"a", "b"}) {
      Ticket& shared = ticketed.ticket(name, Kind::automatic);
      EXPECT_EQ(other->wants(shared), i % 2 == 0 && name[0] == 'a');
      EXPECT_TRUE(ticketed.hook->wants(shared));
      ASSERT_TRUE(other->save(shared, view()).ok());
    }
  }
  ASSERT_TRUE(other->close().ok());
  expect_the_same();
  EXPECT_THAT(RecordedRun(o.storage).names(2), ElementsAre("smdebug/reductions/mean/a"));
  EXPECT_THAT(RecordedRun(o.storage).steps(), ElementsAre(0, 2));
}

TEST_F(TicketTest, mistakes_come_back) {
  start(with_reductions());
  Ticket ticket("a"), empty(""), broken("\xff");
  ASSERT_TRUE(ticketed.hook->save(ticket, view()).ok()) << "dropped, as no step has begun";
  EXPECT_THAT(ticketed.log->lines,
              ElementsAre("'a' was saved before the first step began; it is dropped."));
  ASSERT_TRUE(ticketed.hook->begin_step().ok());
  EXPECT_EQ(ticketed.hook->save(empty, view()).error().code, ErrorCode::invalid_argument);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(ticketed.hook->save(broken, view()).error().code, ErrorCode::invalid_argument);
  }
  const TensorView nowhere{.data = nullptr, .dtype = DType::float32, .shape = shape};
  EXPECT_EQ(ticketed.hook->save(ticket, nowhere).error().code, ErrorCode::invalid_argument);
  ASSERT_TRUE(ticketed.hook->close().ok());
  EXPECT_EQ(ticketed.hook->save(ticket, view()).error().code, ErrorCode::closed);
  EXPECT_FALSE(ticketed.hook->wants(ticket));
}

// The content stands for the elements that it was first given with.
TEST_F(TicketTest, elements_that_are_known_are_not_read_again) {
  start(with_reductions());
  ASSERT_TRUE(ticketed.hook->begin_step().ok());
  Ticket a("a"), b("b"), c("c");
  const uint64_t content = ticketed.hook->next_content();
  EXPECT_TRUE(ticketed.hook->save(a, view(), content).ok());
  values[0] = 100;
  EXPECT_TRUE(ticketed.hook->save(b, view(), content).ok());
  EXPECT_TRUE(ticketed.hook->save(c, view(), ticketed.hook->next_content()).ok());
  EXPECT_TRUE(ticketed.hook->close().ok());
  const RecordedRun run = ticketed.run();
  EXPECT_THAT(run.values<float>(0, "smdebug/reductions/max/a"), ElementsAre(4));
  EXPECT_THAT(run.values<float>(0, "smdebug/reductions/max/b"), ElementsAre(4));
  EXPECT_THAT(run.values<float>(0, "smdebug/reductions/max/c"), ElementsAre(100));
}

TEST_F(TicketTest, known_elements_are_recorded_like_others) {
  values = {1, std::nanf(""), 3, 4};
  for (const int64_t recorder : {0, 2}) {
    SCOPED_TRACE(recorder);
    both([](Side& side) { side = Side(); });
    HookOptions o = with_reductions();
    o.config.flight_recorder = recorder;
    o.config.include_collections = {"more"};
    start(o);
    both([&](Side& side) {
      Collection& more = side.collection("more");
      ASSERT_TRUE(more.include("b").ok());
      more.set_reduction_config(std::make_shared<ReductionConfig>(
          *ReductionConfig::create({.reductions = {"min", "variance"}, .save_raw_tensor = true})));
      for (int step = 0; step < 3; ++step) {
        ASSERT_TRUE(side.hook->begin_step().ok());
        const uint64_t content = side.hook->next_content();
        for (const char* name : {"a", "b", "c"}) {
          const Status saved =
              side.has_tickets
                  ? side.hook->save(side.ticket(name, Kind::automatic), view(), content)
                  : side.hook->save(name, view());
          EXPECT_TRUE(saved.ok());
        }
      }
    });
    expect_the_same();
  }
}

// Large enough for a second thread to take part.
TEST_F(TicketTest, a_list_is_saved_like_its_tensors) {
  values.resize(size_t{1} << 19);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009) / 7;
  for (const int64_t recorder : {0, 2}) {
    SCOPED_TRACE(recorder);
    both([](Side& side) { side = Side(); });
    HookOptions o = with_reductions();
    o.config.flight_recorder = recorder;
    start(o);
    both([&](Side& side) {
      for (int step = 0; step < 5; ++step) {
        ASSERT_TRUE(side.hook->begin_step().ok());
        std::vector<Hook::Listed> list;
        std::deque<Shape> shapes;
        for (int i = 0; i < 20; ++i) {
          shapes.push_back({i == 3 ? 0 : static_cast<int64_t>(values.size()) >> (i % 4)});
          const TensorView part{
              .data = values.data(), .dtype = DType::float32, .shape = shapes.back()};
          const std::string name = "t" + std::to_string(i);
          if (side.has_tickets) {
            list.push_back({&side.ticket(name, Kind::automatic), part});
          } else {
            side.save(name, part);
          }
        }
        EXPECT_TRUE(side.hook->save_list(list).ok());
      }
    });
    expect_the_same();
  }
}

}  // namespace
}  // namespace smd
