#include "smd/writer/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Lines = std::vector<std::string>;

// Notes the calls that open, fill and end steps.
class NotingSink final : public Sink {
 public:
  explicit NotingSink(Lines& lines) : lines_(lines) {}
  Status begin_step(const StepInfo& step) override {
    return note("begin " + std::to_string(step.step));
  }
  Status tensor(const format::TensorHead& head, ByteSpan) override {
    return note("tensor " + std::string(head.name));
  }
  Status more(ByteSpan) override { return note("more"); }
  Status reductions(std::string_view tensor, double, std::span<const StoredReduction>) override {
    return note("reductions " + std::string(tensor));
  }
  Status strings(const format::TensorHead&, std::span<const std::string_view>) override {
    return {};
  }
  Status shape(std::string_view, std::string_view, std::span<const int64_t>) override { return {}; }
  Status end_step() override { return note("end"); }
  void abandon_step() override { (void)note("abandon"); }
  Status put(std::string_view path, std::string_view) override {
    return Error{ErrorCode::io, "No room: " + std::string(path)};
  }
  Status end_job(const JobEnd&) override { return {}; }
  Status close() override { return note("close"); }

 private:
  Status note(std::string line) {
    lines_.push_back(std::move(line));
    return {};
  }
  Lines& lines_;
};

class NoReductions final : public LateReductions {
 public:
  Result<std::span<const StoredReduction>> wait() override {
    return Error{ErrorCode::io, "The device is gone."};
  }
};

class NoMemory final : public LateMemory {
 public:
  Status wait() override { return Error{ErrorCode::io, "The device is gone."}; }
};

class ExecutorTest : public testing::Test {
 protected:
  static BeginStep begin(Step step) {
    return {{.step = step, .mode = Mode::train, .mode_step = step}};
  }
  static TensorData tensor(std::string_view name) { return {{.name = name}, {}}; }

  Lines lines;
  WriterProgress progress;
  Executor executor{std::make_unique<NotingSink>(lines), {}, progress};
};

TEST_F(ExecutorTest, a_step_whose_end_was_dropped_is_lost_when_the_next_begins) {
  executor.run(begin(0));
  executor.run(begin(1));
  executor.run(EndStep{});
  executor.finish();
  EXPECT_THAT(lines, ElementsAre("begin 0", "abandon", "begin 1", "end", "close"));
  EXPECT_EQ(progress.committed_steps(), 1);
}

TEST_F(ExecutorTest, a_step_that_is_open_at_the_end_is_abandoned) {
  executor.run(begin(0));
  executor.run(tensor("x"));
  executor.finish();
  EXPECT_THAT(lines, ElementsAre("begin 0", "tensor x", "abandon", "close"));
  EXPECT_EQ(progress.committed_steps(), 0);
}

TEST_F(ExecutorTest, late_data_that_does_not_come_costs_its_step_and_no_other) {
  NoReductions reductions;
  NoMemory memory;
  executor.run(begin(0));
  executor.run(LateData{.tensor = "x", .reductions = &reductions});
  executor.run(tensor("y"));
  executor.run(EndStep{});
  executor.run(begin(1));
  executor.run(AwaitMemory{&memory});
  executor.run(tensor("z"));
  executor.run(EndStep{});
  executor.run(begin(2));
  executor.run(EndStep{});
  EXPECT_THAT(lines, ElementsAre("begin 0", "abandon", "begin 1", "abandon", "begin 2", "end"));
  EXPECT_EQ(progress.committed_steps(), 1);
  EXPECT_THAT(progress.result().error().message,
              HasSubstr("The device is gone. (2 steps could not be saved.)"));
}

TEST_F(ExecutorTest, a_file_beside_the_steps_that_fails_costs_no_step) {
  executor.run(begin(0));
  executor.run(PutFile{"collections.json", ""});
  executor.run(EndStep{});
  EXPECT_THAT(lines, ElementsAre("begin 0", "end"));
  EXPECT_EQ(progress.take_error()->message, "No room: collections.json");
  EXPECT_FALSE(progress.take_error().has_value());
}

}  // namespace
}  // namespace smd
