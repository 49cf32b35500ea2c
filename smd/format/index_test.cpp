#include "smd/format/index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::format {
namespace {

using testing::HasSubstr;

const StepInfo kStep{.step = 7, .mode = Mode::train, .mode_step = 3};
constexpr std::string_view kFile = "events/000000000007/000000000007_worker_0.tfevents";

TEST(Index, writes_the_very_bytes_of_the_original) {
  IndexBuilder builder;
  builder.add_tensor("w", 0, 105);
  builder.add_tensor("s", 105, 87);
  EXPECT_EQ(builder.finish(kStep, kFile),
            "{\"meta\": {\"mode\": \"TRAIN\", \"mode_step\": 3, \"event_file_name\": "
            "\"events/000000000007/000000000007_worker_0.tfevents\"}, \"tensor_payload\": "
            "[{\"tensorname\": \"w\", \"start_idx\": 0, \"length\": 105}, {\"tensorname\": \"s\", "
            "\"start_idx\": 105, \"length\": 87}], \"shape_payload\": []}");
  EXPECT_TRUE(builder.empty());
}

TEST(Index, comes_back_with_shapes_and_odd_names) {
  IndexBuilder builder;
  builder.add_tensor("a\"b\\\u00e9\U0001F600", 5, 6);
  builder.add_shape("x", "original/x:0", Shape{2, 3});
  builder.add_shape("y", "y", Shape{});
  auto index = parse_index(builder.finish(kStep, kFile), "i.json");
  ASSERT_TRUE(index.ok()) << index.error().message;
  EXPECT_EQ(index->mode, Mode::train);
  EXPECT_EQ(index->mode_step, 3);
  EXPECT_EQ(index->event_file, kFile);
  ASSERT_EQ(index->tensors.size(), 1u);
  EXPECT_EQ(index->tensors[0].name, "a\"b\\\u00e9\U0001F600");
  EXPECT_EQ(index->tensors[0].offset, 5u);
  EXPECT_EQ(index->tensors[0].length, 6u);
  ASSERT_EQ(index->shapes.size(), 2u);
  EXPECT_EQ(index->shapes[0].original_name, "original/x:0");
  EXPECT_EQ(index->shapes[0].shape, (Shape{2, 3}));
  EXPECT_EQ(index->shapes[1].shape, Shape{});
}

TEST(Index, a_checksum_stands_in_a_key_of_its_own) {
  IndexBuilder builder;
  builder.add_tensor("w", 0, 105, 4294967295u);
  const std::string text = builder.finish(kStep, kFile);
  EXPECT_THAT(text, HasSubstr(R"("length": 105, "crc32c": 4294967295})"));
  EXPECT_EQ(parse_index(text, "")->tensors[0].crc32c, 4294967295u);
  builder.add_tensor("w", 0, 105);
  EXPECT_EQ(parse_index(builder.finish(kStep, kFile), "")->tensors[0].crc32c, std::nullopt);
}

TEST(Index, one_parser_reads_many) {
  IndexParser parser;
  for (uint64_t i = 0; i < 3; ++i) {
    IndexBuilder builder;
    builder.add_tensor("w", i, 105);
    const auto index = parser.parse(builder.finish(kStep, kFile), "");
    ASSERT_TRUE(index.ok());
    ASSERT_EQ((*index)->tensors.size(), 1u);
    EXPECT_EQ((*index)->tensors[0].offset, i);
    EXPECT_FALSE(parser.parse("{", "broken").ok());
  }
}

TEST(Index, shapes_alone_need_no_event_file_and_old_files_no_shapes) {
  IndexBuilder builder;
  builder.add_shape("x", "x", Shape{1});
  const std::string text = builder.finish(kStep, "");
  EXPECT_EQ(text.find("event_file_name"), std::string::npos);
  EXPECT_TRUE(parse_index(text, "").ok());
  EXPECT_TRUE(parse_index(R"({"meta": {"mode": "EVAL", "mode_step": 0, "event_file_name": "e"},
                              "tensor_payload": [], "unknown": {"a": [1]}})",
                          "")
                  .ok());
}

TEST(Index, checksums_of_payloads_are_read_where_they_are_recorded) {
  const auto index = parse_index(
      R"({"meta": {"mode": "EVAL", "mode_step": 0, "event_file_name": "e"}, "tensor_payload": [
          {"tensorname": "a", "start_idx": 0, "length": 20, "crc32c": 4294967295},
          {"tensorname": "b", "start_idx": 20, "length": 20},
          {"tensorname": "c", "start_idx": 40, "length": 20, "crc32c": 4294967296},
          {"tensorname": "d", "start_idx": 60, "length": 20, "crc32c": "12"}]})",
      "");
  ASSERT_TRUE(index.ok()) << index.error().message;
  EXPECT_EQ(index->tensors[0].crc32c, 4294967295u);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(index->tensors[i].crc32c, std::nullopt) << i;
}

TEST(Index, says_what_is_wrong_and_where) {
  const char* broken[] = {
      "",
      "{",
      "[]",
      "null",
      "{}",
      R"({"meta": {}})",
      R"({"meta": {"mode": "TRAIN", "mode_step": 0}})",
      R"({"meta": {"mode": "TRAIN", "mode_step": -1}, "tensor_payload": []})",
      R"({"meta": {"mode": "DANCE", "mode_step": 0}, "tensor_payload": []})",
      R"({"meta": {"mode": "TRAIN", "mode_step": 0}, "tensor_payload": [{"tensorname": "x"}]})",
      R"({"meta": {"mode": "TRAIN", "mode_step": 0}, "tensor_payload": [{"tensorname": "x", "start_idx": 0, "length": 1}]})",
      R"({"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "e"}, "tensor_payload": [{"tensorname": "x", "start_idx": -1, "length": 1}]})",
      R"({"meta": {"mode": "TRAIN", "mode_step": 0}, "shape_payload": [{"tensorname": "x", "shape": [-1]}]})",
  };
  for (const char* text : broken) {
    auto index = parse_index(text, "f.json");
    ASSERT_FALSE(index.ok()) << text;
    EXPECT_EQ(index.error().code, ErrorCode::corrupt);
    EXPECT_THAT(index.error().message, HasSubstr("f.json"));
  }
}

}  // namespace
}  // namespace smd::format
