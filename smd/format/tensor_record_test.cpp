#include "smd/format/tensor_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/event.h"
#include "smd/format/internal/hex.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

using internal::from_hex;
using testing::ElementsAre;
using testing::HasSubstr;

const StepInfo kStep{.step = 7, .mode = Mode::train, .mode_step = 3};
constexpr double kWall = 1600000000.5;

Event parse_only(std::string_view record) {
  auto framed = parse_record(as_bytes(record), 0);
  EXPECT_TRUE(framed.ok()) << framed.error().message;
  EXPECT_EQ(framed->size_bytes, record.size());
  auto event = parse_event(framed->payload);
  EXPECT_TRUE(event.ok()) << event.error().message;
  return std::move(*event);
}

TEST(TensorRecord, encodes_numbers_byte_for_byte) {
  const float w[] = {1, 2, 3, 4};
  const Shape shape = {2, 2};
  std::string out;
  append_record(out, kStep,
                {.name = "w", .dtype = DType::float32, .shape = shape, .wall_secs = kWall},
                std::as_bytes(std::span(w)));
  EXPECT_EQ(out, from_hex("59 00 00 00 00 00 00 00 8a 1d 65 b6 09 00 00 20"
                          "00 84 d7 d7 41 10 07 2a 4c 0a 4a 0a 01 77 42 28"
                          "08 01 12 12 12 07 08 02 12 03 77 5f 32 12 07 08"
                          "02 12 03 77 5f 32 22 10 00 00 80 3f 00 00 00 40"
                          "00 00 40 40 00 00 80 40 4a 1b 0a 0e 0a 09 6d 6f"
                          "64 65 5f 73 74 65 70 12 01 33 0a 09 0a 04 6d 6f"
                          "64 65 12 01 31 b3 c0 2d 06"));
}

TEST(TensorRecord, encodes_strings_byte_for_byte) {
  const Shape shape = {2};
  const std::string_view strings[] = {"foo", "barz"};
  std::string out;
  append_string_record(out, kStep, {.name = "s", .shape = shape, .wall_secs = kWall}, strings);
  EXPECT_EQ(out, from_hex("47 00 00 00 00 00 00 00 ba c3 fb 9b 09 00 00 20"
                          "00 84 d7 d7 41 10 07 2a 3a 0a 38 0a 01 73 42 16"
                          "12 09 12 07 08 02 12 03 73 5f 32 42 03 66 6f 6f"
                          "42 04 62 61 72 7a 4a 1b 0a 0e 0a 09 6d 6f 64 65"
                          "5f 73 74 65 70 12 01 33 0a 09 0a 04 6d 6f 64 65"
                          "12 01 31 b3 c0 2d 06"));
  const Event event = parse_only(out);
  EXPECT_EQ(event.name, "s");
  EXPECT_EQ(event.step, kStep);
  EXPECT_EQ(event.tensor->dtype, DType::string);
  EXPECT_THAT(event.tensor->strings, ElementsAre("foo", "barz"));
}

TEST(TensorRecord, start_elements_and_end_make_the_same_record) {
  std::vector<double> values(1000, 1.5);
  const Shape shape = {10, 100};
  const TensorHead head{.name = "x", .dtype = DType::float64, .shape = shape, .wall_secs = kWall};
  std::string whole;
  append_record(whole, kStep, head, std::as_bytes(std::span(values)));
  std::string parts;
  append_record_start(parts, kStep, head, values.size());
  parts += as_text(std::as_bytes(std::span(values)));
  append_record_end(parts, kStep, head);
  EXPECT_EQ(parts, whole);
  EXPECT_EQ(record_bytes(kStep, head, values.size()), whole.size());
}

TEST(TensorRecord, all_names_of_a_tensor_are_in_its_record) {
  const float values[] = {1, 2};
  const Shape shape = {2};
  const std::string_view others[] = {"b", std::string_view("longer name")};
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const TensorHead head{.name = "a", .dtype = dtype, .shape = shape, .other_names = others};
    std::string out;
    append_record_start(out, kStep, head, 2);
    out += as_text(std::as_bytes(std::span(values)));
    append_record_end(out, kStep, head);
    EXPECT_EQ(record_bytes(kStep, head, 2), out.size());
    const Event event = parse_only(out);
    EXPECT_EQ(event.name, "a");
    EXPECT_THAT(event.other_names, ElementsAre("b", "longer name"));
    EXPECT_EQ(event.tensor->dtype, dtype);
  }
}

TEST(TensorRecord, a_tensor_of_2_gib_is_refused_with_its_name) {
  const Shape shape = {int64_t{1} << 29};
  const TensorHead head{.name = "big", .dtype = DType::float32, .shape = shape};
  auto status = check_record_size(head, uint64_t{1} << 29);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::unsupported);
  EXPECT_THAT(status.error().message, HasSubstr("'big'"));
  const Shape fits = {(int64_t{1} << 29) - 64};
  EXPECT_TRUE(check_record_size({.name = "ok", .dtype = DType::float32, .shape = fits},
                                static_cast<uint64_t>(fits[0]))
                  .ok());
}

}  // namespace
}  // namespace smd::format
