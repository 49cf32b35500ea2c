#include "smd/format/packed_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/event.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

using testing::ElementsAre;

TEST(PackedBlockTest, long_numbers_follow_short_ones_at_a_multiple_of_eight) {
  const std::vector<PackedValue> values = {{.dtype = DType::float32},
                                           {.dtype = DType::boolean},
                                           {.dtype = DType::float16},
                                           {.dtype = DType::float64},
                                           {.dtype = DType::int64}};
  const BlockPlaces places = places_of(values);
  EXPECT_THAT(places.offsets, ElementsAre(0, 4, 8, 16, 24));
  EXPECT_EQ(places.size_bytes, 32u);
  EXPECT_EQ(places_of({}).size_bytes, 0u);
}

TEST(PackedBlockTest, single_real_elements_are_block_values) {
  const std::vector<int64_t> none;
  const std::vector<int64_t> one = {1};
  const std::vector<int64_t> two = {2};
  const std::vector<int64_t> square = {1, 1};
  EXPECT_TRUE(is_block_value(DType::bfloat16, none));
  EXPECT_TRUE(is_block_value(DType::int64, one));
  EXPECT_FALSE(is_block_value(DType::float32, two));
  EXPECT_FALSE(is_block_value(DType::float32, square));
  EXPECT_FALSE(is_block_value(DType::complex64, one));
  EXPECT_FALSE(is_block_value(DType::string, one));
}

TEST(PackedBlockTest, values_and_ends_are_aligned_wherever_the_record_begins) {
  for (uint64_t offset : {0u, 1u, 63u, 64u, 1000u}) {
    for (size_t size : {0u, 4u, 60u, 127u, 128u, 5000u}) {
      for (size_t log : {10u, 100u, 20'000u}) {
        const std::string entries(log, 'e');
        const std::string values(size, 'v');
        const BlockHead head{.step = {.step = 200, .mode = Mode::train, .mode_step = 99},
                             .wall_secs = 1.5,
                             .offset = offset,
                             .entries = entries,
                             .values_bytes = size};
        const BlockPlan plan = plan_block(head);
        std::string out;
        append_block(out, head, as_bytes(values));
        EXPECT_EQ(out.size(), plan.record_bytes);
        EXPECT_EQ((offset + plan.values_offset) % 64, 0u);
        EXPECT_EQ((offset + out.size()) % 64, 0u);
        EXPECT_EQ(out.substr(plan.values_offset, size), values);
        const auto record = parse_record(as_bytes(out), 0);
        ASSERT_TRUE(record.ok());
        EXPECT_EQ(block_entries(record->payload), entries);
        const auto event = view_event(record->payload);
        ASSERT_TRUE(event.ok()) << event.error().message;
        EXPECT_EQ(event->name, kBlockTag);
        EXPECT_EQ(event->step, head.step);
        EXPECT_EQ(event->tensor->dtype, DType::uint8);
      }
    }
  }
}

TEST(PackedBlockTest, other_records_are_no_blocks) {
  std::string out;
  const int64_t shape[] = {1};
  append_record(out, {}, {.name = "w", .dtype = DType::uint8, .shape = shape}, as_bytes("x"));
  EXPECT_EQ(block_entries(parse_record(as_bytes(out), 0)->payload), std::nullopt);
  EXPECT_EQ(block_entries(as_bytes("\xff\xff\xff")), std::nullopt);
}

TEST(PackedBlockTest, aligned_records_hold_small_floats_as_they_are) {
  const int64_t shape[] = {3};
  const std::string elements = "abcdef";
  for (uint64_t offset = 0; offset < 130; ++offset) {
    TensorHead head{.name = "layer/w", .dtype = DType::bfloat16, .shape = shape, .as_is = true};
    head.padding = aligning_padding({}, head, 3, offset);
    std::string out;
    append_record(out, {}, head, as_bytes(elements));
    EXPECT_EQ(out.size(), record_bytes({}, head, 3));
    const auto place = locate_content(as_bytes(out));
    ASSERT_TRUE(place);
    EXPECT_EQ((offset + place->offset) % kPackedAlignment, 0u);
    const auto event = parse_event(parse_record(as_bytes(out), 0)->payload);
    ASSERT_TRUE(event.ok());
    EXPECT_EQ(event->tensor->dtype, DType::bfloat16);
    EXPECT_EQ(as_text(event->tensor->elements), elements);
  }
}

}  // namespace
}  // namespace smd::format
