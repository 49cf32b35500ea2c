#include "smd/writer/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <latch>
#include <map>
#include <numeric>
#include <thread>

#include "smd/base/pending_writes.h"
#include "smd/format/event.h"
#include "smd/format/index.h"
#include "smd/format/tfrecord.h"
#include "smd/writer/sinks/original.h"

namespace smd {
namespace {

using testing::HasSubstr;

StepInfo step_info(Step step) { return {.step = step, .mode = Mode::train, .mode_step = step}; }

// Counts what arrives; fails or waits where a test asks for it. Shared with the writer thread.
struct Probe {
  std::atomic<int> steps{0};
  std::atomic<int> abandoned{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<int64_t> fail_at_step{-1};
  std::latch* gate = nullptr;  // waited for in begin_step
};

class ProbeSink final : public Sink {
 public:
  explicit ProbeSink(std::shared_ptr<Probe> probe) : probe_(std::move(probe)) {}
  Status begin_step(const StepInfo& step) override {
    if (probe_->gate != nullptr) probe_->gate->wait();
    step_ = step.step;
    return {};
  }
  Status tensor(const format::TensorHead&, ByteSpan elements) override { return more(elements); }
  Status more(ByteSpan elements) override {
    if (step_ == probe_->fail_at_step) return Error{ErrorCode::io, "No space left: x"};
    probe_->bytes += elements.size();
    return {};
  }
  Status reductions(std::string_view, double, std::span<const StoredReduction>) override {
    return {};
  }
  Status strings(const format::TensorHead&, std::span<const std::string_view>) override {
    return {};
  }
  Status shape(std::string_view, std::string_view, std::span<const int64_t>) override { return {}; }
  Status end_step() override {
    ++probe_->steps;
    return {};
  }
  void abandon_step() override { ++probe_->abandoned; }
  Status put(std::string_view, std::string_view) override { return {}; }
  Status end_job(const JobEnd&) override { return {}; }
  Status close() override { return {}; }

 private:
  std::shared_ptr<Probe> probe_;
  Step step_ = -1;
};

// Notes what it gets; fails where a test asks for it.
class ProbeOutput final : public Output {
 public:
  struct Seen {
    std::vector<std::string> lines;  // writer thread until the writer is closed
    bool wants_tensors = false;
    std::map<std::string, Bytes> tensors;
    bool fails = false;
    bool reads_runs = false;
    std::thread::id thread;
  };
  explicit ProbeOutput(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  Status scalar(const StepInfo& step, const SavedScalar& scalar) override {
    seen_->thread = std::this_thread::get_id();
    seen_->lines.push_back(std::to_string(step.step) + " " + std::string(scalar.name));
    return {};
  }
  bool wants_tensor(std::string_view name) override {
    return seen_->wants_tensors && name != "unwanted";
  }
  Status tensor(const StepInfo& step, const SavedTensor& tensor) override {
    seen_->lines.push_back(std::to_string(step.step) + " " + std::string(tensor.name));
    seen_->tensors[std::string(tensor.name)] =
        Bytes(tensor.elements.begin(), tensor.elements.end());
    return {};
  }
  Status membership(const StepInfo&, const SavedMembership& saved) override {
    for (std::string_view name : saved.collections) {
      seen_->lines.push_back(std::string(saved.tensor) + " in " + std::string(name));
    }
    return {};
  }
  Status end_step() override {
    seen_->lines.emplace_back("end");
    if (seen_->reads_runs) settle_pending_writes(std::chrono::minutes(1));
    return seen_->fails ? Status(Error{ErrorCode::io, "No room: metrics"}) : Status();
  }
  Status close() override {
    seen_->lines.emplace_back("close");
    return {};
  }

 private:
  std::shared_ptr<Seen> seen_;
};

struct Floats {
  explicit Floats(size_t n) : values(n), shape{static_cast<int64_t>(n)} {
    std::iota(values.begin(), values.end(), 0.0f);
  }
  TensorView view() const {
    return {.data = values.data(), .dtype = DType::float32, .shape = shape};
  }
  std::vector<float> values;
  Shape shape;
};

class WriterTest : public testing::Test {
 protected:
  std::shared_ptr<Probe> probe = std::make_shared<Probe>();
  Writer make(WriterOptions options = {}) {
    return Writer(std::make_unique<ProbeSink>(probe), options);
  }
};

TEST_F(WriterTest, outputs_get_the_tensors_that_they_want_whole) {
  const auto seen = std::make_shared<ProbeOutput::Seen>();
  seen->wants_tensors = true;
  std::vector<std::unique_ptr<Output>> outputs;
  outputs.push_back(std::make_unique<ProbeOutput>(seen));
  Writer writer(std::make_unique<ProbeSink>(probe), {}, std::move(outputs));
  const Floats big(3'000'001);
  const Floats small(3);
  writer.begin_step(step_info(4));
  writer.membership({.tensor = "big", .collections = std::array<std::string_view, 2>{"a", "b"}});
  writer.tensor("big", big.view(), 0);
  writer.tensor("unwanted", big.view(), 0);
  writer.tensor("small", small.view(), 0);
  writer.tensor("owned", own(std::vector<float>(big.values), DType::float32, big.shape), 0);
  writer.end_step();
  ASSERT_TRUE(writer.close().ok());
  EXPECT_EQ(seen->lines, (std::vector<std::string>{"big in a", "big in b", "4 big", "4 small",
                                                   "4 owned", "end", "close"}));
  EXPECT_EQ(as_text(seen->tensors["big"]), as_text(std::as_bytes(std::span(big.values))));
  EXPECT_EQ(as_text(seen->tensors["owned"]), as_text(std::as_bytes(std::span(big.values))));
  EXPECT_EQ(as_text(seen->tensors["small"]), as_text(std::as_bytes(std::span(small.values))));
}

TEST_F(WriterTest, outputs_get_a_tensor_under_each_of_its_names) {
  const auto seen = std::make_shared<ProbeOutput::Seen>();
  seen->wants_tensors = true;
  std::vector<std::unique_ptr<Output>> outputs;
  outputs.push_back(std::make_unique<ProbeOutput>(seen));
  Writer writer(std::make_unique<ProbeSink>(probe), {}, std::move(outputs));
  const Floats big(3'000'001);
  const Floats small(3);
  const std::array<std::string_view, 2> others{"unwanted", "another name of the same tensor"};
  writer.begin_step(step_info(4));
  writer.tensor("big", big.view(), 0, others);
  writer.tensor("unwanted", small.view(), 0, others);
  writer.end_step();
  ASSERT_TRUE(writer.close().ok());
  EXPECT_EQ(seen->lines,
            (std::vector<std::string>{"4 big", "4 another name of the same tensor",
                                      "4 another name of the same tensor", "end", "close"}));
  EXPECT_EQ(as_text(seen->tensors["big"]), as_text(std::as_bytes(std::span(big.values))));
  EXPECT_EQ(as_text(seen->tensors["another name of the same tensor"]),
            as_text(std::as_bytes(std::span(small.values))));
}

TEST_F(WriterTest, large_and_small_tensors_arrive_whole) {
  auto storage = storage::memory_storage();
  Writer writer(original_sink({.storage = storage, .worker = "w"}), {});
  const Floats big(3'000'001);
  const Floats small(3);
  for (Step step = 0; step < 3; ++step) {
    writer.begin_step(step_info(step));
    writer.tensor("small", small.view(), 0);
    writer.tensor("big", big.view(), 0);
    writer.tensor("owned", own(std::vector<float>(big.values), DType::float32, big.shape), 0);
    writer.end_step();
  }
  ASSERT_TRUE(writer.close().ok());
  EXPECT_EQ(writer.committed_steps(), 3);
  for (Step step = 0; step < 3; ++step) {
    const auto text = *storage::read_all(
        *storage, "index/000000000/00000000000" + std::to_string(step) + "_w.json");
    const auto index = *format::parse_index(as_text(text), "");
    const auto file = *storage::read_all(*storage, index.event_file);
    ASSERT_EQ(index.tensors.size(), 3u);
    for (const auto& at : index.tensors) {
      const auto record = format::parse_record(ByteSpan(file).subspan(at.offset, at.length), 0);
      ASSERT_TRUE(record.ok()) << record.error().message;
      const auto event = format::parse_event(record->payload);
      const auto& expected = at.name == "small" ? small.values : big.values;
      EXPECT_EQ(as_text(event->tensor->elements), as_text(std::as_bytes(std::span(expected))))
          << at.name;
    }
  }
}

TEST_F(WriterTest, a_snapshot_is_taken_before_the_call_returns) {
  auto storage = storage::memory_storage();
  Writer writer(original_sink({.storage = storage, .worker = "w"}), {});
  Floats x(1000);
  writer.begin_step(step_info(0));
  writer.tensor("x", x.view(), 0);
  std::fill(x.values.begin(), x.values.end(), -1.0f);
  writer.end_step();
  ASSERT_TRUE(writer.close().ok());
  const auto file = *storage::read_all(*storage, "events/000000000000/000000000000_w.tfevents");
  const auto event = format::parse_event(format::parse_record(file, 0)->payload);
  EXPECT_EQ(load_le<float>(event->tensor->elements.data() + 4 * 999), 999.0f);
}

TEST_F(WriterTest, a_failed_step_costs_no_other_and_is_reported_once_and_by_close) {
  probe->fail_at_step = 1;
  Writer writer = make();
  const Floats x(10);
  for (Step step = 0; step < 4; ++step) {
    writer.begin_step(step_info(step));
    writer.tensor("x", x.view(), 0);
    writer.tensor("y", x.view(), 0);
    writer.end_step();
  }
  auto closed = writer.close();
  ASSERT_FALSE(closed.ok());
  EXPECT_THAT(closed.error().message, HasSubstr("No space left"));
  EXPECT_THAT(closed.error().message, HasSubstr("1 step could not be saved"));
  EXPECT_EQ(writer.take_error()->code, ErrorCode::io);
  EXPECT_FALSE(writer.take_error().has_value());
  EXPECT_FALSE(writer.close().ok());
  EXPECT_EQ(probe->steps, 3);
  EXPECT_EQ(probe->abandoned, 1);
}

TEST_F(WriterTest, pending_bytes_stay_below_the_limit) {
  constexpr size_t kLimit = size_t{8} << 20;
  Writer writer = make({.max_queue_bytes = kLimit});
  const Floats x(1 << 20);
  for (Step step = 0; step < 40; ++step) {
    writer.begin_step(step_info(step));
    writer.tensor("x", x.view(), 0);
    writer.end_step();
  }
  ASSERT_TRUE(writer.close().ok());
  EXPECT_LE(writer.peak_queue_bytes(), kLimit);
  EXPECT_EQ(probe->bytes, 40u * (4u << 20));
}

TEST_F(WriterTest, a_stuck_sink_costs_the_wait_once_and_then_drops_steps) {
  std::latch gate(1);
  probe->gate = &gate;
  Writer writer = make({.max_queue_bytes = 4u << 20, .max_wait = std::chrono::milliseconds(20)});
  const Floats x(1 << 20);
  for (Step step = 0; step < 20; ++step) {
    writer.begin_step(step_info(step));
    writer.tensor("x", x.view(), 0);
    writer.end_step();
  }
  ASSERT_TRUE(writer.take_error().has_value());
  EXPECT_FALSE(writer.take_error().has_value());
  EXPECT_THAT(writer.close().error().message, HasSubstr("gave up"));
  gate.count_down();
  // The sink is free again: what was accepted is finished, nothing of a torn step is.
  while (!writer.close().ok() &&
         writer.close().error().message.find("gave up") != std::string::npos) {
  }
  EXPECT_THAT(writer.close().error().message, HasSubstr("too slow"));
  EXPECT_LE(probe->steps, 2);
}

// Wants to be called a moment after each step.
class TickingSink final : public Sink {
 public:
  struct Seen {
    std::latch ticked{1};
    std::atomic<int> ticks{0};
  };
  explicit TickingSink(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  Status begin_step(const StepInfo&) override { return {}; }
  Status tensor(const format::TensorHead&, ByteSpan) override { return {}; }
  Status more(ByteSpan) override { return {}; }
  Status reductions(std::string_view, double, std::span<const StoredReduction>) override {
    return {};
  }
  Status strings(const format::TensorHead&, std::span<const std::string_view>) override {
    return {};
  }
  Status shape(std::string_view, std::string_view, std::span<const int64_t>) override { return {}; }
  Status end_step() override {
    due_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    return {};
  }
  void abandon_step() override {}
  std::optional<std::chrono::steady_clock::time_point> due() const override { return due_; }
  Status tick() override {
    due_.reset();
    if (seen_->ticks++ == 0) seen_->ticked.count_down();
    return Error{ErrorCode::io, "The tick failed."};
  }
  Status put(std::string_view, std::string_view) override { return {}; }
  Status end_job(const JobEnd&) override { return {}; }
  Status close() override { return {}; }

 private:
  const std::shared_ptr<Seen> seen_;
  std::optional<std::chrono::steady_clock::time_point> due_;
};

TEST_F(WriterTest, a_sink_is_called_when_it_is_due_although_no_step_comes) {
  const auto seen = std::make_shared<TickingSink::Seen>();
  Writer writer(std::make_unique<TickingSink>(seen), {});
  writer.begin_step(step_info(0));
  writer.end_step();
  seen->ticked.wait();
  EXPECT_THAT(writer.close().error().message, HasSubstr("The tick failed."));
  EXPECT_EQ(seen->ticks, 1) << "not again until it is due again";
}

TEST_F(WriterTest, closing_an_unused_writer_starts_no_thread) {
  Writer writer = make();
  EXPECT_TRUE(writer.close().ok());
  EXPECT_TRUE(writer.close().ok());
  EXPECT_EQ(writer.committed_steps(), 0);
}

TEST_F(WriterTest, what_was_handed_over_can_be_waited_for) {
  std::latch gate(1);
  probe->gate = &gate;
  Writer writer = make();
  EXPECT_TRUE(writer.wait_until_written(std::chrono::milliseconds(0))) << "nothing to wait for";
  writer.begin_step(step_info(0));
  writer.end_step();
  EXPECT_FALSE(writer.wait_until_written(std::chrono::milliseconds(1)));
  gate.count_down();
  EXPECT_TRUE(writer.wait_until_written(std::chrono::minutes(1)));
  EXPECT_EQ(probe->steps, 1);
}

TEST_F(WriterTest, readers_of_the_process_wait_for_what_was_handed_over) {
  std::latch gate(1);
  probe->gate = &gate;
  Writer writer = make();
  writer.begin_step(step_info(0));
  writer.end_step();
  std::jthread disk([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    gate.count_down();
  });
  settle_pending_writes(std::chrono::minutes(1));
  EXPECT_EQ(probe->steps, 1);
}

class WriterOutputs : public WriterTest {
 protected:
  std::shared_ptr<ProbeOutput::Seen> seen = std::make_shared<ProbeOutput::Seen>();
  Writer make_with_output() {
    std::vector<std::unique_ptr<Output>> outputs;
    outputs.push_back(std::make_unique<ProbeOutput>(seen));
    return Writer(std::make_unique<ProbeSink>(probe), {}, std::move(outputs));
  }
  static void run_steps(Writer& writer, int count) {
    const Floats tensor(8);
    for (Step step = 0; step < count; ++step) {
      writer.begin_step(step_info(step));
      writer.tensor("t", tensor.view(), 0);
      writer.scalar({.name = "x", .value = 1});
      writer.end_step();
    }
  }
};

TEST_F(WriterOutputs, one_that_reads_a_run_does_not_wait_for_itself) {
  seen->reads_runs = true;
  Writer writer = make_with_output();
  run_steps(writer, 2);
  EXPECT_TRUE(writer.wait_until_written(std::chrono::seconds(30)));
  EXPECT_TRUE(writer.close().ok());
}

TEST_F(WriterOutputs, get_each_scalar_with_its_step) {
  Writer writer = make_with_output();
  run_steps(writer, 2);
  ASSERT_TRUE(writer.close().ok());
  EXPECT_THAT(seen->lines, testing::ElementsAre("0 x", "end", "1 x", "end", "close"));
  EXPECT_FALSE(writer.take_output_error().has_value());
  EXPECT_NE(seen->thread, std::this_thread::get_id()) << "the training thread does not wait for it";
}

TEST_F(WriterOutputs, that_fail_do_not_harm_the_run) {
  seen->fails = true;
  Writer writer = make_with_output();
  run_steps(writer, 3);
  EXPECT_TRUE(writer.close().ok());
  EXPECT_EQ(writer.committed_steps(), 3);
  EXPECT_EQ(probe->abandoned, 0);
  EXPECT_EQ(writer.take_output_error()->message, "No room: metrics");
}

TEST_F(WriterOutputs, go_on_when_the_run_fails) {
  probe->fail_at_step = 1;
  Writer writer = make_with_output();
  run_steps(writer, 3);
  EXPECT_FALSE(writer.close().ok());
  EXPECT_EQ(writer.committed_steps(), 2);
  EXPECT_THAT(seen->lines, testing::ElementsAre("0 x", "end", "1 x", "end", "2 x", "end", "close"));
}

}  // namespace
}  // namespace smd
