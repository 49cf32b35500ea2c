#include "smd/writer/internal/record_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "smd/base/crc32c.h"
#include "smd/format/event.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/tfrecord.h"

namespace smd::internal {
namespace {

using testing::SizeIs;

class RecordBuilderTest : public testing::Test {
 protected:
  const std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  const std::string writer = format::writer_name("w", format::incarnation_text(1, 2));
  GrowingSegment segment =
      *GrowingSegment::open(*storage, {.writer = writer, .number = 0}, Durability::off);
  NameTable names;
  RecordBuilder builder{names, 1000};

  void SetUp() override {
    segment.begin_step();
    builder.begin_step(segment, {.step = 5});
  }
  std::vector<uint64_t> counts() {
    std::vector<uint64_t> out;
    for (const format::PackedRaw& raw : builder.raws()) out.push_back(raw.count);
    return out;
  }
  // The elements of all records, which must be right in every other respect.
  std::vector<float> stored() {
    EXPECT_TRUE(segment.commit_step("entry").ok());
    const Bytes file = *storage::read_all(*storage, segment.path());
    std::vector<float> out;
    for (const format::PackedRaw& raw : builder.raws()) {
      const auto record = format::parse_record(ByteSpan(file).subspan(raw.offset, raw.length), 0);
      EXPECT_TRUE(record.ok());
      EXPECT_EQ(raw.crc32c, crc32c(record->payload));
      const auto event = format::parse_event(record->payload);
      EXPECT_TRUE(event.ok());
      const ByteSpan elements = event->tensor->elements;
      for (size_t at = 0; at < elements.size(); at += sizeof(float)) {
        out.push_back(load_le<float>(elements.data() + at));
      }
    }
    return out;
  }
  static std::vector<float> counting(size_t count) {
    std::vector<float> out(count);
    std::iota(out.begin(), out.end(), 0.0F);
    return out;
  }
};

TEST_F(RecordBuilderTest, a_tensor_that_fits_is_one_record) {
  const auto elements = counting(100);
  const Shape shape = {10, 10};
  const ByteSpan bytes = std::as_bytes(std::span(elements));
  ASSERT_TRUE(builder.tensor({.name = "x", .shape = shape}, bytes.first(12)).ok());
  ASSERT_TRUE(builder.more(bytes.subspan(12)).ok());
  EXPECT_THAT(builder.raws(), SizeIs(1));
  EXPECT_FALSE(builder.has_parts());
  EXPECT_EQ(stored(), elements);
}

TEST_F(RecordBuilderTest, parts_hold_whole_rows) {
  const auto elements = counting(1000);
  const Shape shape = {10, 100};
  ASSERT_TRUE(
      builder.tensor({.name = "x", .shape = shape}, std::as_bytes(std::span(elements))).ok());
  EXPECT_TRUE(builder.has_parts());
  for (const uint64_t count : counts()) EXPECT_EQ(count % 100, 0u);
  EXPECT_EQ(builder.raws().back().shape, shape) << "that of the whole tensor";
  EXPECT_EQ(stored(), elements);
}

TEST_F(RecordBuilderTest, rows_that_do_not_fit_are_parted) {
  const auto elements = counting(1000);
  const Shape shape = {2, 500};
  const ByteSpan bytes = std::as_bytes(std::span(elements));
  ASSERT_TRUE(builder.tensor({.name = "x", .shape = shape}, bytes.first(2000)).ok());
  ASSERT_TRUE(builder.more(bytes.subspan(2000)).ok());
  EXPECT_GT(builder.raws().size(), 2u);
  uint64_t next = 0;
  for (const format::PackedRaw& raw : builder.raws()) {
    EXPECT_EQ(raw.first, next);
    EXPECT_LE(raw.length, 1000u);
    next += raw.count;
  }
  EXPECT_EQ(next, 1000u);
  EXPECT_EQ(stored(), elements);
}

TEST_F(RecordBuilderTest, a_cleared_builder_knows_nothing_of_the_step) {
  const auto elements = counting(1000);
  const Shape shape = {1000};
  const ByteSpan bytes = std::as_bytes(std::span(elements));
  ASSERT_TRUE(builder.tensor({.name = "x", .shape = shape}, bytes.first(4)).ok());
  builder.clear();
  EXPECT_TRUE(builder.empty());
  EXPECT_FALSE(builder.has_parts());
}

}  // namespace
}  // namespace smd::internal
