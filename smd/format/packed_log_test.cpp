#include "smd/format/packed_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <protozero/pbf_writer.hpp>

#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

using testing::HasSubstr;

Result<PackedEntry> written_and_read(const PackedEntry& entry, std::string& memory) {
  memory.clear();
  append_log_entry(memory, entry);
  const auto record = parse_record(as_bytes(memory), 0);
  EXPECT_TRUE(record.ok());
  EXPECT_EQ(record->footer, Footer::checksum);
  EXPECT_EQ(record->size_bytes, memory.size());
  return parse_log_entry(record->payload);
}

PackedStep a_step() {
  return {.info = {.step = 300, .mode = Mode::eval, .mode_step = 7},
          .wall_secs = 12.5,
          .base = 64 * 5,
          .length = 4096,
          .schema = 3,
          .block_offset = 1024,
          .block_crc32c = 0xDEADBEEF,
          .raws = {{.tensor = 2,
                    .offset = 0,
                    .length = 999,
                    .crc32c = 1,
                    .dtype = DType::bfloat16,
                    .shape = {3, 0, 5}}},
          .shapes = {{.tensor = 1, .original_name = 4, .shape = {}}}};
}

TEST(PackedLogTest, entries_are_read_back) {
  const std::vector<PackedEntry> entries = {
      PackedHeader{.worker = "worker_0",
                   .writer = "worker_0.1",
                   .segment = "v2/seg/aa/worker_0.1/00000000",
                   .created_secs = 1.5},
      PackedNames{.first_id = 9, .names = {"a", "", "é/b"}},
      PackedSchema{.id = 3,
                   .ops = {"min", "abs_l2"},
                   .values = {{.tensor = 0, .op = 1, .dtype = DType::float32},
                              {.tensor = 1, .op = 0, .dtype = DType::boolean, .rank = 0},
                              {.tensor = 1, .op = 2, .dtype = DType::float64}}},
      PackedSchema{.id = 4},
      a_step(),
      PackedEnd()};
  std::string memory;
  for (const PackedEntry& entry : entries) {
    const auto again = written_and_read(entry, memory);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, entry) << entry.index();
  }
}

TEST(PackedLogTest, the_size_of_a_step_does_not_depend_on_its_places) {
  std::string memory;
  append_log_entry(memory, a_step());
  PackedStep other = a_step();
  other.base = 0;
  other.length = uint64_t{1} << 50;
  other.block_offset = 0;
  other.block_crc32c = 0;
  other.raws[0].crc32c = 0;
  std::string again;
  append_log_entry(again, other);
  EXPECT_EQ(memory.size(), again.size());
}

TEST(PackedLogTest, a_later_version_is_refused_with_a_sentence) {
  std::string memory;
  const auto newer = written_and_read(PackedHeader{.version = 2}, memory);
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().code, ErrorCode::unsupported);
  EXPECT_THAT(newer.error().message, HasSubstr("version 2"));
  const auto needs = written_and_read(PackedHeader{.features = 0x12}, memory);
  ASSERT_FALSE(needs.ok());
  EXPECT_EQ(needs.error().code, ErrorCode::unsupported);
  EXPECT_THAT(needs.error().message, HasSubstr("0x12"));
}

TEST(PackedLogTest, kinds_and_fields_that_came_later_are_passed_over) {
  std::string later;
  protozero::pbf_writer writer(later);
  writer.add_string(99, "something");
  const auto unknown = parse_log_entry(as_bytes(later));
  ASSERT_TRUE(unknown.ok());
  EXPECT_TRUE(std::holds_alternative<PackedUnknown>(*unknown));

  std::string names;
  {
    protozero::pbf_writer entry(names);
    protozero::pbf_writer message(entry, 2);
    message.add_string(1, "not a number");  // a known field of another type
    message.add_uint32(77, 1);
    message.add_string(2, "x");
  }
  const auto read = parse_log_entry(as_bytes(names));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, PackedEntry(PackedNames{.first_id = 0, .names = {"x"}}));
}

TEST(PackedLogTest, schemas_that_describe_no_block_are_corrupt) {
  std::string memory;
  const std::vector<PackedSchema> bad = {
      {.values = {{.op = 1}}},
      {.values = {{.dtype = DType::complex64}}},
      {.values = {{.dtype = DType::float64}, {.dtype = DType::float32}}},
      {.values = {{.rank = 2}}},
  };
  for (const PackedSchema& schema : bad) {
    const auto read = written_and_read(schema, memory);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, ErrorCode::corrupt);
  }
}

TEST(PackedLogTest, parts_outside_of_their_step_are_corrupt) {
  std::string memory;
  PackedStep step = a_step();
  step.raws[0].length = step.length + 1;
  EXPECT_EQ(written_and_read(step, memory).error().code, ErrorCode::corrupt);
  step = a_step();
  step.block_offset = step.length + 1;
  EXPECT_EQ(written_and_read(step, memory).error().code, ErrorCode::corrupt);
  step = a_step();
  step.base = ~uint64_t{0};
  EXPECT_EQ(written_and_read(step, memory).error().code, ErrorCode::corrupt);
}

TEST(PackedLogTest, cut_payloads_are_corrupt) {
  std::string memory;
  append_log_entry(memory, a_step());
  const auto payload = parse_record(as_bytes(memory), 0)->payload;
  const auto cut = parse_log_entry(payload.first(payload.size() - 3));
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace smd::format
