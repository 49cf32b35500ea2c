#include "smd/writer/sinks/original.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "smd/format/event.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/tfrecord.h"

namespace smd {
namespace {

using testing::ElementsAre;

constexpr StepInfo kStep{.step = 1000, .mode = Mode::eval, .mode_step = 3};

class OriginalSinkTest : public testing::Test {
 protected:
  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::unique_ptr<Sink> sink = original_sink({.storage = storage, .worker = "worker_0"});

  std::vector<std::string> paths() {
    std::vector<std::string> out;
    for (const auto& file : *storage->list("", "")) out.push_back(file.path);
    return out;
  }
  // The tensor at an index entry of the step.
  format::Event read(size_t entry) {
    const auto text = *storage::read_all(*storage, format::index_file_name(kStep.step, "worker_0"));
    const auto index = format::parse_index(as_text(text), "");
    EXPECT_TRUE(index.ok());
    const auto file = *storage::read_all(*storage, index->event_file);
    const auto& at = index->tensors[entry];
    const auto record =
        format::parse_record(ByteSpan(file).subspan(at.offset, at.length), at.offset);
    EXPECT_TRUE(record.ok()) << record.error().message;
    EXPECT_EQ(record->size_bytes, at.length);
    auto event = format::parse_event(record->payload);
    EXPECT_TRUE(event.ok()) << event.error().message;
    EXPECT_EQ(event->name, at.name);
    EXPECT_EQ(event->step, kStep);
    return std::move(*event);
  }
};

TEST_F(OriginalSinkTest, publishes_the_event_file_and_then_the_index) {
  const float x[] = {1, 2};
  const Shape shape = {2};
  ASSERT_TRUE(sink->begin_step(kStep).ok());
  ASSERT_TRUE(sink->tensor({.name = "x", .shape = shape}, std::as_bytes(std::span(x))).ok());
  EXPECT_THAT(paths(), ElementsAre());
  ASSERT_TRUE(sink->end_step().ok());
  EXPECT_THAT(paths(), ElementsAre("events/000000001000/000000001000_worker_0.tfevents",
                                   "index/000000001/000000001000_worker_0.json"));
  EXPECT_EQ(read(0).tensor->shape, shape);
}

TEST_F(OriginalSinkTest, parts_of_a_large_tensor_join_and_offsets_stay_right) {
  std::vector<double> big(100'000);
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<double>(i);
  const Shape shape = {100, 1000};
  const ByteSpan bytes = std::as_bytes(std::span(big));
  const StoredReduction min{.name = "abs_min", .dtype = DType::float64};
  ASSERT_TRUE(sink->begin_step(kStep).ok());
  ASSERT_TRUE(sink->reductions("big", 1.5, {{min}}).ok());
  ASSERT_TRUE(
      sink->tensor({.name = "big", .dtype = DType::float64, .shape = shape}, bytes.first(8)).ok());
  ASSERT_TRUE(sink->more(bytes.subspan(8, 400'000)).ok());
  ASSERT_TRUE(sink->more(bytes.subspan(400'008)).ok());
  ASSERT_TRUE(sink->reductions("big", 1.5, {{min}}).ok());
  const Shape two = {2};
  ASSERT_TRUE(sink->strings({.name = "names", .shape = two}, {{"a", "\u00e4"}}).ok());
  ASSERT_TRUE(sink->end_step().ok());
  EXPECT_EQ(read(0).name, "smdebug/reductions/abs_min/big");
  EXPECT_EQ(as_text(read(1).tensor->elements), as_text(bytes));
  EXPECT_EQ(read(2).wall_secs, 1.5);
  EXPECT_THAT(read(3).tensor->strings, ElementsAre("a", "\u00e4"));
}

TEST_F(OriginalSinkTest, widens_what_the_original_cannot_read_also_in_parts) {
  Bytes elements(100'000);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::byte>(i * 7);
  for (DType dtype : {DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2}) {
    const Shape shape = {static_cast<int64_t>(elements.size() / size_of(dtype))};
    ASSERT_TRUE(sink->begin_step(kStep).ok());
    ASSERT_TRUE(sink->tensor({.name = "x", .dtype = dtype, .shape = shape},
                             ByteSpan(elements).first(50'002))
                    .ok());
    ASSERT_TRUE(sink->more(ByteSpan(elements).subspan(50'002)).ok());
    ASSERT_TRUE(sink->end_step().ok());
    EXPECT_EQ(read(0).tensor->dtype, dtype);
    EXPECT_EQ(read(0).tensor->elements, elements);
  }
}

TEST_F(OriginalSinkTest, a_step_with_shapes_only_has_no_event_file) {
  ASSERT_TRUE(sink->begin_step(kStep).ok());
  ASSERT_TRUE(sink->shape("x", "x", Shape{3}).ok());
  ASSERT_TRUE(sink->end_step().ok());
  EXPECT_THAT(paths(), ElementsAre("index/000000001/000000001000_worker_0.json"));
}

TEST_F(OriginalSinkTest, an_abandoned_step_leaves_nothing_and_the_next_one_is_whole) {
  const float x = 1;
  ASSERT_TRUE(sink->begin_step(kStep).ok());
  ASSERT_TRUE(sink->tensor({.name = "lost"}, std::as_bytes(std::span(&x, 1))).ok());
  sink->abandon_step();
  EXPECT_THAT(paths(), ElementsAre());
  ASSERT_TRUE(sink->begin_step(kStep).ok());
  ASSERT_TRUE(sink->tensor({.name = "kept"}, std::as_bytes(std::span(&x, 1))).ok());
  ASSERT_TRUE(sink->end_step().ok());
  EXPECT_EQ(read(0).name, "kept");
}

TEST_F(OriginalSinkTest, the_last_of_several_workers_ends_the_job) {
  auto other = original_sink({.storage = storage, .worker = "worker_1"});
  ASSERT_TRUE(sink->end_job({.num_workers = 2}).ok());
  EXPECT_FALSE(storage->stat("training_job_end.ts").ok());
  ASSERT_TRUE(other->end_job({.num_workers = 2}).ok());
  EXPECT_TRUE(storage->stat("training_job_end.ts").ok());
}

TEST_F(OriginalSinkTest, workers_that_end_at_the_same_moment_all_succeed) {
  const std::string root = testing::TempDir() + "/smd_original_sink_" + std::to_string(::getpid());
  for (int round = 0; round < 100; ++round) {
    std::filesystem::remove_all(root);
    std::latch start(2);
    std::array<Status, 2> ended;
    std::vector<std::thread> workers;
    for (size_t i = 0; i < ended.size(); ++i) {
      workers.emplace_back([&, i] {
        auto own = original_sink(
            {.storage = storage::local_storage(root), .worker = "worker_" + std::to_string(i)});
        start.arrive_and_wait();
        ended[i] = own->end_job({.num_workers = 2});
      });
    }
    for (std::thread& worker : workers) worker.join();
    for (const Status& status : ended) ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_TRUE(std::filesystem::exists(root + "/training_job_end.ts"));
  }
  std::filesystem::remove_all(root);
}

TEST_F(OriginalSinkTest, a_single_worker_ends_the_job_alone) {
  ASSERT_TRUE(sink->end_job({}).ok());
  EXPECT_EQ(storage->stat("training_job_end.ts")->size_bytes, 0);
}

TEST_F(OriginalSinkTest, a_second_exclusive_writer_saves_nothing) {
  auto first = original_sink({.storage = storage, .worker = "worker_0", .exclusive = true});
  auto second = original_sink({.storage = storage, .worker = "worker_0", .exclusive = true});
  ASSERT_TRUE(first->begin_step(kStep).ok());
  EXPECT_EQ(second->begin_step(kStep).error().code, ErrorCode::closed);
  EXPECT_EQ(second->put("x", "y").error().code, ErrorCode::closed);
  EXPECT_EQ(second->end_job({}).error().code, ErrorCode::closed);
  EXPECT_THAT(paths(), ElementsAre("claim.smd"));
  ASSERT_TRUE(first->close().ok());
  EXPECT_THAT(paths(), ElementsAre());
}

TEST_F(OriginalSinkTest, an_empty_step_writes_nothing) {
  ASSERT_TRUE(sink->begin_step(kStep).ok());
  ASSERT_TRUE(sink->end_step().ok());
  EXPECT_THAT(paths(), ElementsAre());
}

// Forwards to another storage until told that files whose path starts so cannot be put.
class FailingStorage final : public storage::Storage {
 public:
  explicit FailingStorage(std::shared_ptr<Storage> inner) : inner_(std::move(inner)) {}
  std::string failing;  // empty: none

  std::string name() const override { return inner_->name(); }
  Result<std::unique_ptr<storage::WriteFile>> create(std::string_view path,
                                                     const storage::CreateOptions& o) override {
    return inner_->create(path, o);
  }
  Result<bool> put(std::string_view path, ByteSpan content, storage::Put when,
                   const storage::CreateOptions& o) override {
    if (!failing.empty() && path.starts_with(failing))
      return Error{ErrorCode::io, "No space left."};
    return inner_->put(path, content, when, o);
  }
  Result<std::unique_ptr<storage::ReadFile>> open(std::string_view path) override {
    return inner_->open(path);
  }
  Result<storage::FileInfo> stat(std::string_view path) override { return inner_->stat(path); }
  Result<std::vector<storage::FileInfo>> list(std::string_view folder,
                                              std::string_view start_after) override {
    return inner_->list(folder, start_after);
  }
  Status remove(std::string_view path) override { return inner_->remove(path); }
  Status sync() override { return inner_->sync(); }

 private:
  std::shared_ptr<Storage> inner_;
};

TEST_F(OriginalSinkTest, an_index_of_an_earlier_run_never_points_into_a_new_event_file) {
  const Shape shape = {2};
  const float x[] = {1, 2};
  ASSERT_TRUE(sink->begin_step(kStep).ok());
  ASSERT_TRUE(sink->tensor({.name = "x", .shape = shape}, std::as_bytes(std::span(x))).ok());
  ASSERT_TRUE(sink->end_step().ok());

  // The next run ends between the event file and the index of the same step.
  auto failing = std::make_shared<FailingStorage>(storage);
  auto next = original_sink({.storage = failing, .worker = "worker_0"});
  ASSERT_TRUE(next->begin_step(kStep).ok());
  ASSERT_TRUE(next->tensor({.name = "another", .shape = shape}, std::as_bytes(std::span(x))).ok());
  failing->failing = "index/";
  EXPECT_FALSE(next->end_step().ok());
  EXPECT_THAT(paths(), ElementsAre("events/000000001000/000000001000_worker_0.tfevents"));
}

TEST_F(OriginalSinkTest, a_file_beside_the_steps_is_tried_again_until_it_is_there) {
  auto failing = std::make_shared<FailingStorage>(storage);
  failing->failing = "collections/";
  auto other = original_sink({.storage = failing, .worker = "worker_0"});
  const auto save_step = [&] {
    ASSERT_TRUE(other->begin_step(kStep).ok());
    ASSERT_TRUE(other->shape("x", "x", {}).ok());
    ASSERT_TRUE(other->end_step().ok());
  };
  EXPECT_FALSE(other->put("collections/c.json", "{}").ok());
  save_step();
  EXPECT_FALSE(storage->stat("collections/c.json").ok());
  failing->failing.clear();
  save_step();
  EXPECT_TRUE(storage->stat("collections/c.json").ok());
}

TEST_F(OriginalSinkTest, names_of_one_tensor_share_a_record) {
  const std::string_view others[] = {"y", "z"};
  for (const size_t count : {size_t{2}, size_t{100'000}}) {  // in the buffer, and past it
    const std::vector<float> x(count, 1.5F);
    const Shape shape = {static_cast<int64_t>(count)};
    const ByteSpan bytes = std::as_bytes(std::span(x));
    ASSERT_TRUE(sink->begin_step(kStep).ok());
    ASSERT_TRUE(sink->tensor({.name = "x", .shape = shape, .other_names = others}, bytes).ok());
    ASSERT_TRUE(sink->tensor({.name = "next", .shape = shape}, bytes).ok());
    ASSERT_TRUE(sink->end_step().ok());
    const auto text = *storage::read_all(*storage, format::index_file_name(kStep.step, "worker_0"));
    const auto index = format::parse_index(as_text(text), "");
    ASSERT_TRUE(index.ok());
    ASSERT_EQ(index->tensors.size(), 4u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(index->tensors[i].name, i == 0 ? "x" : i == 1 ? "y" : "z");
      EXPECT_EQ(index->tensors[i].offset, 0u);
      EXPECT_EQ(index->tensors[i].length, index->tensors[0].length);
      EXPECT_EQ(index->tensors[i].crc32c, index->tensors[0].crc32c);
    }
    EXPECT_EQ(index->tensors[3].offset, index->tensors[0].length);
    EXPECT_EQ(read(3).tensor->shape, shape);
  }
}

TEST_F(OriginalSinkTest, a_file_beside_the_steps_that_vanished_is_there_again_at_the_end) {
  ASSERT_TRUE(sink->put("collections/c.json", "{}").ok());
  ASSERT_TRUE(storage->remove("collections/c.json").ok());
  ASSERT_TRUE(sink->end_job({}).ok());
  EXPECT_TRUE(storage->stat("collections/c.json").ok());
}

}  // namespace
}  // namespace smd
