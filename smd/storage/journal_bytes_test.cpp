#include "smd/storage/journal_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/crc32c.h"

namespace smd::storage {
namespace {

using testing::HasSubstr;

JournalHead sample() {
  return {.last = 12,
          .snapshots = {{.first = 1, .last = 7, .size_bytes = 99},
                        {.first = 8, .last = 10, .chance = 77}},
          .entries = {{.number = 11, .id = "a", .content = std::string("x\0y", 3)},
                      {.number = 12, .id = "b", .content = std::string(5000, 'z')}}};
}

TEST(JournalBytes, what_was_written_is_read) {
  EXPECT_EQ(*parse_head(as_bytes(*encode_head(sample()))), sample());
  EXPECT_EQ(*parse_head(as_bytes(*encode_head({}))), JournalHead());
  EXPECT_EQ(*parse_entries(as_bytes(*encode_entries(sample().entries))), sample().entries);
}

TEST(JournalBytes, the_header_is_as_documented) {
  const std::string bytes = *encode_head(sample());
  EXPECT_EQ(bytes.substr(0, 8), "SMDHEAD1");
  const ByteSpan span = as_bytes(bytes);
  EXPECT_EQ(load_le<uint16_t>(span.data() + 8), 1);
  EXPECT_EQ(load_le<uint16_t>(span.data() + 10), 0);
  EXPECT_EQ(load_le<uint32_t>(span.data() + 12), crc32c(span.subspan(16)));
  EXPECT_EQ(load_le<uint32_t>(span.data() + 16), bytes.size() - 24);
  EXPECT_GT(load_le<uint32_t>(span.data() + 20), 5000u);
  EXPECT_EQ(encode_entries(sample().entries)->substr(0, 8), "SMDLIST1");
}

TEST(JournalBytes, every_shortened_object_is_truncated) {
  const std::string bytes = *encode_head(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto head = parse_head(as_bytes(bytes).first(size));
    ASSERT_FALSE(head.ok()) << size;
    EXPECT_EQ(head.error().code, ErrorCode::truncated) << size;
  }
}

TEST(JournalBytes, every_changed_byte_is_noticed) {
  const std::string bytes = *encode_head(sample());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] = static_cast<char>(other[at] ^ 0x10);
    EXPECT_FALSE(parse_head(as_bytes(other)).ok()) << at;
  }
}

TEST(JournalBytes, what_is_wrong_is_said) {
  EXPECT_THAT(parse_head(as_bytes("<html>")).error().message, HasSubstr("not written by smdebug"));
  const std::string list = *encode_entries(sample().entries);
  EXPECT_EQ(parse_head(as_bytes(list)).error().code, ErrorCode::corrupt);
  std::string later = *encode_head(sample());
  later[8] = 2;
  EXPECT_EQ(parse_head(as_bytes(later)).error().code, ErrorCode::unsupported);
  EXPECT_THAT(parse_head(as_bytes(later)).error().message, HasSubstr("update smdebug"));
  std::string features = *encode_head(sample());
  features[10] = 4;
  EXPECT_EQ(parse_head(as_bytes(features)).error().code, ErrorCode::unsupported);
  EXPECT_EQ(parse_entries(as_bytes(*encode_entries({}))).error().code, ErrorCode::corrupt);
}

TEST(JournalBytes, gaps_are_refused) {
  JournalHead head = sample();
  head.snapshots.erase(head.snapshots.begin());
  EXPECT_EQ(parse_head(as_bytes(*encode_head(head))).error().code, ErrorCode::corrupt);
  head = sample();
  head.entries.erase(head.entries.begin());
  EXPECT_EQ(parse_head(as_bytes(*encode_head(head))).error().code, ErrorCode::corrupt);
  head = sample();
  head.last = 13;
  EXPECT_EQ(parse_head(as_bytes(*encode_head(head))).error().code, ErrorCode::corrupt);
  head = sample();
  head.snapshots[1].last = 7;
  EXPECT_EQ(parse_head(as_bytes(*encode_head(head))).error().code, ErrorCode::corrupt);
  std::swap(head.entries[0], head.entries[1]);
  EXPECT_EQ(parse_entries(as_bytes(*encode_entries(head.entries))).error().code,
            ErrorCode::corrupt);
}

}  // namespace
}  // namespace smd::storage
