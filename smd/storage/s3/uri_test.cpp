#include "smd/storage/s3/uri.h"

#include <gtest/gtest.h>

namespace smd::storage {
namespace {

TEST(S3Uri, splits_bucket_and_prefix_and_collapses_slashes) {
  EXPECT_EQ(*parse_s3_uri("s3://bucket/a/b"), (S3Uri{"bucket", "a/b"}));
  EXPECT_EQ(*parse_s3_uri("s3://bucket"), (S3Uri{"bucket", ""}));
  EXPECT_EQ(*parse_s3_uri("s3://bucket/"), (S3Uri{"bucket", ""}));
  EXPECT_EQ(*parse_s3_uri("s3://my.bucket-1//a///b//"), (S3Uri{"my.bucket-1", "a/b"}));
  EXPECT_EQ(parse_s3_uri("s3://bucket//a/")->text(), "s3://bucket/a");
  EXPECT_EQ(parse_s3_uri("s3://bucket/")->text(), "s3://bucket");
}

TEST(S3Uri, refuses_what_is_no_bucket) {
  for (const char* uri : {"", "bucket/a", "s3:/bucket/a", "s3://", "s3:///a", "s3://ab/x",
                          "s3://has space/x", "gs://bucket"}) {
    const auto parsed = parse_s3_uri(uri);
    ASSERT_FALSE(parsed.ok()) << uri;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument) << uri;
  }
}

}  // namespace
}  // namespace smd::storage
