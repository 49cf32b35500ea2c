#include "smd/format/packed_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::format {
namespace {

using testing::HasSubstr;

TEST(PackedManifest, what_was_written_is_read) {
  const PackedManifest segment{.writer = "worker_0.1",
                               .segment = "v2/seg/5f/worker_0.1/00000000",
                               .segment_bytes = uint64_t{5} << 30,
                               .log = std::string("a\0b", 3),
                               .watermark = 17};
  EXPECT_EQ(*parse_manifest(as_bytes(encode_manifest(segment))), segment);
  const PackedManifest files{
      .writer = "worker_0.1", .files = {{"collections/x", "{}"}, {"empty", ""}}, .end_secs = 1.5e9};
  EXPECT_EQ(*parse_manifest(as_bytes(encode_manifest(files))), files);
  EXPECT_EQ(*parse_manifest(as_bytes(encode_manifest({}))), PackedManifest());
}

TEST(PackedManifest, what_cannot_be_read_is_said) {
  EXPECT_EQ(parse_manifest({}).error().code, ErrorCode::corrupt);
  EXPECT_EQ(parse_manifest(as_bytes("\x0a\xff")).error().code, ErrorCode::corrupt);
  const auto later = parse_manifest(as_bytes("\x08\x02"));
  EXPECT_EQ(later.error().code, ErrorCode::unsupported);
  EXPECT_THAT(later.error().message, HasSubstr("version 2"));
  const auto features = parse_manifest(as_bytes("\x08\x01\x10\x04"));
  EXPECT_EQ(features.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(parse_manifest(as_bytes("\x08\x01\x78\x04")).ok()) << "unknown fields are skipped";
}

}  // namespace
}  // namespace smd::format
