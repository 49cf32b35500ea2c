// Tensors that are larger than a record may be: written by the packed sink in parts, read by the
// trial as one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "smd/format/packed_log.h"
#include "smd/format/tfrecord.h"
#include "smd/trial/diff.h"
#include "smd/trial/trial.h"
#include "smd/trial/verify.h"
#include "tests/support/rich_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SplitTensor : public testing::Test {
 protected:
  static constexpr uint64_t kMost = 1000;
  const std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  const RichRun recorded{storage, true};

  SplitTensor() {
    recorded.put(format::collections_file_name("worker_0"),
                 R"({"collections": {}, "_meta": {"num_workers": 1}})");
  }
  std::unique_ptr<Sink> sink() const {
    return recorded.sink("worker_0", {.max_record_bytes = kMost});
  }
  static std::vector<float> counted(size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0f);
    return values;
  }
  // In pieces of `chunk` bytes, as the writer thread gets them.
  static void save(Sink& to, Step step, const Shape& shape, size_t chunk) {
    const auto values = counted(static_cast<size_t>(TensorView{.shape = shape}.size()));
    ByteSpan bytes = std::as_bytes(std::span(values));
    ASSERT_TRUE(to.begin_step({.step = step}).ok());
    ByteSpan first = bytes.first(std::min(chunk, bytes.size()));
    ASSERT_TRUE(to.tensor({.name = "w", .shape = shape, .wall_secs = 7}, first).ok());
    for (bytes = bytes.subspan(first.size()); !bytes.empty(); bytes = bytes.subspan(first.size())) {
      first = bytes.first(std::min(chunk, bytes.size()));
      ASSERT_TRUE(to.more(first).ok());
    }
    const float small[] = {1, 2};
    ASSERT_TRUE(
        to.tensor({.name = "small", .shape = Shape{2}}, std::as_bytes(std::span(small))).ok());
    ASSERT_TRUE(to.end_step().ok());
  }
  std::unique_ptr<Trial> open() const {
    auto trial = Trial::open(storage, {.check = true, .end_delay_secs = 0});
    EXPECT_TRUE(trial.ok()) << trial.error().message;
    return std::move(*trial);
  }
  void expect_value(Trial& trial, Step step, const Shape& shape) const {
    const auto value = trial.value("w", {.step = step});
    ASSERT_TRUE(value.ok()) << value.error().message;
    EXPECT_EQ(value->shape, shape);
    EXPECT_EQ(value->wall_secs, 7);
    const auto values = counted(static_cast<size_t>(TensorView{.shape = shape}.size()));
    const ByteSpan bytes = std::as_bytes(std::span(values));
    EXPECT_TRUE(
        std::equal(value->elements.begin(), value->elements.end(), bytes.begin(), bytes.end()));
  }
  std::string log_text() const { return recorded.text(recorded.files("v2/log").front()); }
  std::vector<format::PackedEntry> entries() const {
    text_ = log_text();
    std::vector<format::PackedEntry> out;
    for (ByteSpan left = as_bytes(text_); !left.empty();) {
      const auto record = format::parse_record(left, 0);
      EXPECT_TRUE(record.ok());
      out.push_back(*format::parse_log_entry(record->payload));
      left = left.subspan(record->size_bytes);
    }
    return out;
  }

 private:
  mutable std::string text_;
};

TEST_F(SplitTensor, comes_back_as_one_whatever_its_shape_and_however_it_arrives) {
  const Shape shapes[] = {{100, 10}, {1, 1000}, {1000}, {7, 3, 40}, {3, 300}, {2, 2, 999}};
  const auto to = sink();
  Step step = 0;
  for (const Shape& shape : shapes) {
    for (size_t chunk : {size_t{4}, size_t{1000}, size_t{100'000}}) save(*to, step++, shape, chunk);
  }
  ASSERT_TRUE(to->close().ok());
  const auto trial = open();
  for (Step i = 0; i < step; ++i) expect_value(*trial, i, shapes[i / 3]);
  EXPECT_EQ(trial->value("small", {.step = 3})->shape, Shape{2});
  const auto report = verify_run(*storage, {.deep = true});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->damage(), 0u);
}

TEST_F(SplitTensor, its_parts_are_whole_rows_below_the_limit) {
  const auto to = sink();
  save(*to, 0, {100, 10}, 1 << 20);
  uint64_t next = 0;
  for (const auto& entry : entries()) {
    const auto* step = std::get_if<format::PackedStep>(&entry);
    if (step == nullptr) continue;
    for (const auto& raw : step->raws) {
      if (raw.count == 0) continue;
      EXPECT_LE(raw.length, kMost);
      EXPECT_EQ(raw.first, next);
      EXPECT_EQ(raw.count % 10, 0u);
      EXPECT_EQ(raw.shape, (Shape{100, 10}));
      next += raw.count;
    }
  }
  EXPECT_EQ(next, 1000u);
}

TEST_F(SplitTensor, older_readers_are_warned_before_the_first_one_and_not_sooner) {
  const auto to = sink();
  save(*to, 0, {10}, 1 << 20);
  save(*to, 1, {1000}, 1 << 20);
  save(*to, 2, {1000}, 1 << 20);
  std::vector<std::string> order;
  for (const auto& entry : entries()) {
    if (const auto* header = std::get_if<format::PackedHeader>(&entry)) {
      order.push_back("features " + std::to_string(header->features));
    }
    if (std::holds_alternative<format::PackedStep>(entry)) order.emplace_back("step");
  }
  EXPECT_THAT(order, ElementsAre("features 0", "step", "features 1", "step", "step"));
}

TEST_F(SplitTensor, is_described_without_being_read_and_is_no_number) {
  const auto to = sink();
  save(*to, 0, {100, 10}, 1 << 20);
  const auto trial = open();
  const auto snapshot = trial->snapshot();
  const auto at = snapshot->find(snapshot->row(0), *snapshot->find_tensor("w"), Slot::value(), {});
  ASSERT_TRUE(at);
  const auto about = trial->describe(*snapshot, *at);
  ASSERT_TRUE(about.ok());
  EXPECT_EQ(about->dtype, DType::float32);
  EXPECT_EQ(about->shape, (Shape{100, 10}));
  const Location both[] = {*at, *at};
  std::optional<double> numbers[] = {1.0, 1.0};
  ASSERT_TRUE(trial->read_single_numbers(*snapshot, both, numbers).ok());
  EXPECT_EQ(numbers[0], std::nullopt);
  double plain[2];
  EXPECT_FALSE(trial->read_numbers(*snapshot, both, plain).ok());
  EXPECT_EQ(trial->reduction("w", "max", {.step = 0})->to_double(), 999);
}

TEST_F(SplitTensor, equals_the_same_tensor_in_one_piece) {
  const auto whole = storage::memory_storage();
  const RichRun other(whole, true);
  other.put(format::collections_file_name("worker_0"),
            R"({"collections": {}, "_meta": {"num_workers": 1}})");
  save(*sink(), 0, {100, 10}, 64);
  save(*other.sink("worker_0"), 0, {100, 10}, 64);
  const auto b = Trial::open(whole, {});
  const auto diff = diff_trials(*open(), **b, {});
  ASSERT_TRUE(diff.ok()) << diff.error().message;
  EXPECT_TRUE(diff->equal());
  EXPECT_EQ(diff->compared.elements, 1002);
}

TEST_F(SplitTensor, damage_in_any_part_is_found) {
  save(*sink(), 0, {100, 10}, 1 << 20);
  const std::string path = recorded.files("v2/seg").front();
  std::string bytes = recorded.text(path);
  const float last = 999;
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&last), 4));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  recorded.put(path, bytes);
  const auto value = open()->value("w", {.step = 0});
  ASSERT_FALSE(value.ok());
  EXPECT_THAT(value.error().message, HasSubstr("checksum"));
  EXPECT_EQ(verify_run(*storage, {})->damage(), 1u);
  recorded.put(path, bytes.substr(0, at));
  EXPECT_FALSE(open()->value("w", {.step = 0}).ok());
}

TEST_F(SplitTensor, parts_that_make_no_tensor_are_refused) {
  const auto make = [&](std::vector<format::PackedRaw> raws) {
    std::string log;
    format::append_log_entry(
        log, format::PackedHeader{.features = format::kSplitTensors, .worker = "worker_0"});
    format::append_log_entry(log, format::PackedNames{.names = {"w"}});
    format::append_log_entry(log, format::PackedSchema{});
    format::append_log_entry(
        log, format::PackedStep{.length = 1000, .block_offset = 1000, .raws = std::move(raws)});
    recorded.put("v2/log/worker_0.00000000000001deadbeef/00000000", log);
    return open()->snapshot()->steps(Mode::global, true);
  };
  const format::PackedRaw first{.length = 100, .shape = {20}, .first = 0, .count = 10};
  format::PackedRaw second{.offset = 100, .length = 100, .shape = {20}, .first = 10, .count = 10};
  EXPECT_THAT(make({first, second}), ElementsAre(0));
  EXPECT_THAT(make({first}), IsEmpty());
  EXPECT_THAT(make({second}), IsEmpty());
  EXPECT_THAT(make({second, first}), IsEmpty());
  second.first = 9;
  EXPECT_THAT(make({first, second}), IsEmpty());
  second.first = 10;
  second.count = uint64_t{1} << 62;
  EXPECT_THAT(make({first, second}), IsEmpty());
  second.count = 10;
  second.dtype = DType::int8;
  EXPECT_THAT(make({first, second}), IsEmpty());
}

}  // namespace
}  // namespace smd
