#include "smd/writer/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
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

class NoNumbers final : public LateNumbers {
 public:
  Result<std::span<const LateFound>> wait() override {
    return Error{ErrorCode::io, "The device is gone."};
  }
};

class Memory final : public LateMemory {
 public:
  explicit Memory(Result<bool> filled) : filled_(std::move(filled)) {}
  bool is_ready() const override { return true; }
  Result<bool> wait() override { return filled_; }

 private:
  const Result<bool> filled_;
};

// Notes the tensors that it is given.
class NotingOutput final : public Output {
 public:
  explicit NotingOutput(Lines& lines) : lines_(lines) {}
  Status scalar(const StepInfo&, const SavedScalar&) override { return {}; }
  bool wants_tensor(std::string_view) override { return true; }
  Status tensor(const StepInfo&, const SavedTensor& saved) override {
    lines_.push_back("shown " + std::string(saved.name));
    return {};
  }
  Status end_step() override { return {}; }
  Status close() override { return {}; }

 private:
  Lines& lines_;
};

class ExecutorTest : public testing::Test {
 protected:
  static BeginStep begin(Step step) {
    return {{.step = step, .mode = Mode::train, .mode_step = step}};
  }
  // A single number.
  static TensorData tensor(std::string_view name) {
    static constexpr std::array<std::byte, sizeof(float)> kZero{};
    return {{.name = name}, kZero};
  }

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
  NoNumbers numbers;
  Memory memory(Error{ErrorCode::io, "The device is gone."});
  executor.run(begin(0));
  executor.run(LateData{.numbers = &numbers});
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

TEST_F(ExecutorTest, memory_that_is_not_to_be_saved_is_seen_by_nobody) {
  std::vector<std::unique_ptr<Output>> outputs;
  outputs.push_back(std::make_unique<NotingOutput>(lines));
  Executor both(std::make_unique<NotingSink>(lines), std::move(outputs), progress);
  Memory unwanted(false), wanted(true), failed(Error{ErrorCode::io, "The device is gone."});
  both.run(begin(0));
  both.run(AwaitMemory{&unwanted});
  both.run(tensor("x"));
  both.run(AwaitMemory{&wanted});
  both.run(tensor("y"));
  both.run(EndStep{});
  both.run(begin(1));
  both.run(AwaitMemory{&failed});
  both.run(tensor("z"));
  both.run(EndStep{});
  EXPECT_THAT(lines, ElementsAre("begin 0", "shown y", "tensor y", "end", "begin 1", "abandon"));
  EXPECT_EQ(progress.committed_steps(), 1);
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
