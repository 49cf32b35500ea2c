#include "smd/format/packed_footer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/event.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

constexpr uint64_t kBefore = 100;

std::string segment_with(std::string_view log) {
  std::string out(kBefore, 'x');
  EXPECT_TRUE(append_footer(out, out.size(), log).ok());
  return out;
}

ByteSpan tail_of(const std::string& segment) { return as_bytes(segment).last(kFooterTailBytes); }

TEST(PackedFooterTest, the_log_is_read_from_the_end) {
  for (const std::string& log : {std::string(), std::string("abc"), std::string(100'000, 'z')}) {
    const std::string segment = segment_with(log);
    const auto place = parse_footer_tail(tail_of(segment), segment.size());
    ASSERT_TRUE(place.ok()) << place.error().message;
    const auto again =
        unpack_footer(*place, as_bytes(segment).subspan(place->offset, place->length));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, log);
    EXPECT_LT(segment.size(), kBefore + 1000);  // compressed
  }
}

TEST(PackedFooterTest, the_footer_is_an_ordinary_record) {
  const std::string segment = segment_with("abc");
  const auto record = parse_record(as_bytes(segment).subspan(kBefore), kBefore);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->size_bytes, segment.size() - kBefore);
  const auto event = parse_event(record->payload);
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->name, kFooterTag);
}

TEST(PackedFooterTest, other_ends_are_no_footer) {
  const std::string zeros(kFooterTailBytes, '\0');
  EXPECT_EQ(parse_footer_tail(as_bytes(zeros), 1000).error().code, ErrorCode::not_found);
  EXPECT_EQ(parse_footer_tail(as_bytes("short"), 5).error().code, ErrorCode::not_found);
}

TEST(PackedFooterTest, damage_is_told) {
  const std::string segment = segment_with("abcabc");
  const auto place = parse_footer_tail(tail_of(segment), segment.size());
  ASSERT_TRUE(place.ok());
  std::string damaged = segment;
  damaged[place->offset + 2] ^= 1;
  const auto damaged_bytes = as_bytes(damaged).subspan(place->offset, place->length);
  EXPECT_EQ(unpack_footer(*place, damaged_bytes).error().code, ErrorCode::corrupt);
  EXPECT_EQ(parse_footer_tail(tail_of(segment), 40).error().code, ErrorCode::corrupt);
  std::string later = segment;
  later[later.size() - kFooterTailBytes + 20] = 9;  // the version
  EXPECT_EQ(parse_footer_tail(tail_of(later), later.size()).error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace smd::format
