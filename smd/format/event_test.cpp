#include "smd/format/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/internal/hex.h"
#include "smd/format/tensor_record.h"
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

// The two worked examples of the format's documentation.
TEST(Event, every_element_type_and_rank_comes_back) {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::string || is_stored_widened(dtype)) continue;
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{2, 3}, Shape{1, 2, 1, 3}}) {
      const auto count = static_cast<size_t>(*element_count(shape));
      Bytes elements(count * size_of(dtype));
      for (size_t b = 0; b < elements.size(); ++b) elements[b] = static_cast<std::byte>(b * 37 % 2);
      std::string out;
      append_record(out, kStep, {.name = "t\u00e9", .dtype = dtype, .shape = shape}, elements);
      const Event event = parse_only(out);
      EXPECT_EQ(event.name, "t\u00e9");
      EXPECT_EQ(event.tensor->dtype, dtype);
      EXPECT_EQ(event.tensor->shape, shape);
      EXPECT_EQ(event.tensor->elements, elements);
      EXPECT_EQ(event.wall_secs, 0);
    }
  }
}

TEST(Event, mode_and_step_extremes_come_back) {
  const float x = 1;
  for (Mode mode : kModes) {
    for (Step step : {Step{0}, Step{1}, Step{127}, Step{128}, Step{999999999999}}) {
      const StepInfo info{.step = step, .mode = mode, .mode_step = step};
      std::string out;
      append_record(out, info, {.name = "x", .wall_secs = kWall}, std::as_bytes(std::span(&x, 1)));
      EXPECT_EQ(parse_only(out).step, info);
    }
  }
}

TEST(Event, widened_types_are_float32_to_others_and_themselves_to_us) {
  const Shape shape = {2};
  const TensorHead head{.name = "b", .dtype = DType::bfloat16, .shape = shape};
  const uint32_t wide[] = {0x3f800000, 0x7f810000};  // 1 and a NaN with a payload
  EXPECT_EQ(stored_bytes({.dtype = DType::bfloat16}, 2), 8u);
  std::string out;
  append_record_start(out, kStep, head, 2);
  out += as_text(std::as_bytes(std::span(wide)));
  append_record_end(out, kStep, head);
  EXPECT_EQ(out.size(), record_bytes(kStep, head, 2));
  const Event event = parse_only(out);
  EXPECT_EQ(event.tensor->dtype, DType::bfloat16);
  EXPECT_EQ(event.tensor->elements,
            (Bytes{std::byte{0x80}, std::byte{0x3f}, std::byte{0x81}, std::byte{0x7f}}));
}

TEST(Event, widened_types_may_have_no_elements) {
  const Shape shape = {0, 3};
  std::string out;
  append_record(out, kStep, {.name = "b", .dtype = DType::bfloat16, .shape = shape}, {});
  const Event event = parse_only(out);
  EXPECT_EQ(event.tensor->dtype, DType::bfloat16);
  EXPECT_EQ(event.tensor->shape, shape);
  EXPECT_EQ(event.tensor->elements, Bytes());
}

TEST(Event, lists_of_other_writers_are_understood) {
  // TensorProto{dtype: INT16, shape: [2], int_val: [1, -2]} by hand.
  const std::string tensor =
      from_hex("08 05 12 04 12 02 08 02 3a 0b 01 fe ff ff ff ff ff ff ff ff 01");
  std::string value = from_hex("0a 01 78 42");
  value += static_cast<char>(tensor.size());
  value += tensor;
  std::string summary = "\x0a";
  summary += static_cast<char>(value.size());
  summary += value;
  std::string event = "\x2a";
  event += static_cast<char>(summary.size());
  event += summary;
  auto parsed = parse_event(as_bytes(event));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->tensor->dtype, DType::int16);
  int16_t values[2];
  std::memcpy(values, parsed->tensor->elements.data(), 4);
  EXPECT_THAT(values, ElementsAre(1, -2));
  EXPECT_EQ(parsed->step.mode, Mode::global);
}

TEST(Event, a_view_points_into_the_payload) {
  const float x[2] = {1, 2};
  const Shape shape = {2};
  std::string out;
  append_record(out, kStep, {.name = "x", .shape = shape, .wall_secs = kWall},
                std::as_bytes(std::span(x)));
  const ByteSpan record = as_bytes(out);
  const auto event = view_event(parse_record(record, 0)->payload);
  ASSERT_TRUE(event.ok());
  const auto place = locate_content(record);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->length, sizeof x);
  EXPECT_EQ(event->tensor->elements.data(), record.data() + place->offset);
  EXPECT_EQ(event->name.data() > out.data(), true);
  // The place is known from the beginning alone, and from nothing shorter.
  EXPECT_EQ(locate_content(record.first(place->offset))->offset, place->offset);
  for (size_t n = 0; n < place->offset; ++n) {
    EXPECT_FALSE(locate_content(record.first(n)).has_value()) << n;
  }
}

TEST(Event, type_and_shape_are_known_without_the_elements) {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::string) continue;
    const Shape shape = {2, 0, 5};
    const TensorHead head{.name = "w", .dtype = dtype, .shape = shape, .wall_secs = kWall};
    std::string start;
    append_record_start(start, kStep, head, 10);
    std::string end;
    append_record_end(end, kStep, head);
    const auto outline = outline_tensor(as_bytes(start), as_bytes(end));
    ASSERT_TRUE(outline.has_value()) << name_of(dtype);
    EXPECT_EQ(outline->dtype, dtype);
    EXPECT_EQ(outline->shape, shape);
    EXPECT_EQ(outline->wall_secs, kWall);
    for (size_t n = 0; n < start.size(); ++n) {
      EXPECT_FALSE(outline_tensor(as_bytes(start).first(n), as_bytes(end)).has_value()) << n;
    }
  }
}

TEST(Event, a_version_record_is_an_event_without_a_tensor) {
  // file_version "brain.Event:2"
  auto event = parse_event(as_bytes(from_hex("1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32")));
  ASSERT_TRUE(event.ok());
  EXPECT_FALSE(event->tensor.has_value());
}

TEST(Event, elements_that_do_not_fill_the_shape_are_corrupt) {
  const float x[2] = {};
  const Shape shape = {3};
  std::string out;
  append_record(out, kStep, {.name = "x", .shape = shape}, std::as_bytes(std::span(x)));
  auto event = parse_event(parse_record(as_bytes(out), 0)->payload);
  ASSERT_FALSE(event.ok());
  EXPECT_EQ(event.error().code, ErrorCode::corrupt);
}

TEST(Event, the_reference_variant_of_strings_with_numbers_is_corrupt) {
  // dtype 107, tensor_content of three bytes.
  const std::string event = from_hex("2a 0e 0a 0c 0a 01 77 42 07 08 6b 22 03 61 62 63");
  const auto parsed = parse_event(as_bytes(event));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, ErrorCode::corrupt);
}

TEST(Event, strings_win_over_numbers_that_stand_beside_them) {
  // dtype 1, one float as tensor_content or as a list, and one string.
  for (const char* hex : {"2a 14 0a 12 0a 01 77 42 0d 08 01 12 00 22 04 00 00 80 3f 42 01 61",
                          "2a 14 0a 12 0a 01 77 42 0d 08 01 32 00 2a 04 00 00 80 3f 42 01 61"}) {
    const std::string event = from_hex(hex);
    const auto parsed = parse_event(as_bytes(event));
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(parsed->tensor->dtype, DType::string);
    EXPECT_THAT(parsed->tensor->strings, ElementsAre("a"));
    EXPECT_TRUE(parsed->tensor->elements.empty());
    EXPECT_TRUE(view_event(as_bytes(event))->tensor->elements.empty());
  }
}

TEST(Event, an_empty_name_and_empty_strings_without_memory_come_back) {
  const int64_t shape[] = {2};
  const std::string_view strings[] = {{}, {}};
  std::string out;
  append_string_record(out, kStep, {.name = {}, .shape = shape}, strings);
  const Event event = parse_only(out);
  EXPECT_EQ(event.name, "");
  EXPECT_THAT(event.tensor->strings, ElementsAre("", ""));
}

TEST(Event, a_known_field_of_another_wire_type_is_skipped) {
  // Tensor w with dtype 1, a shape of no dimensions and one float; then a varint where metadata
  // belongs.
  const std::string event =
      from_hex("10 05 2a 13 0a 11 0a 01 77 42 0a 08 01 12 00 22 04 00 00 80 3f 48 07");
  const auto parsed = parse_event(as_bytes(event));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->step.mode_step, 5);
  EXPECT_EQ(load_le<float>(parsed->tensor->elements.data()), 1.0f);
  // A double where the step belongs, a varint where the summary belongs.
  EXPECT_FALSE(
      parse_event(as_bytes(from_hex("11 00 00 00 00 00 00 00 00 28 01")))->tensor.has_value());
}

}  // namespace
}  // namespace smd::format
