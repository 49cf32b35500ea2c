#include "smd/storage/s3/answer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace smd::storage {
namespace {

// From Amazon's documentation of ListObjectsV2, shortened.
constexpr const char* kPage = R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name><Prefix>a/</Prefix><MaxKeys>1000</MaxKeys><EncodingType>url</EncodingType>
  <IsTruncated>true</IsTruncated><NextContinuationToken>1ueGcxLPR/x=</NextContinuationToken>
  <Contents><Key>a/my+image%2B1.jpg</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>
    <ETag>"fba9"</ETag><Size>434234</Size><StorageClass>STANDARD</StorageClass></Contents>
  <Contents><Key>a/%C3%A9</Key><Size>0</Size></Contents>
  <CommonPrefixes><Prefix>a/b/</Prefix></CommonPrefixes>
</ListBucketResult>)";

TEST(Listing, gives_keys_sizes_times_folders_and_the_next_page) {
  const S3Listing listing = *parse_listing(kPage);
  ASSERT_EQ(listing.objects.size(), 2u);
  EXPECT_EQ(listing.objects[0].path, "a/my image+1.jpg");
  EXPECT_EQ(listing.objects[0].size_bytes, 434234);
  EXPECT_EQ(listing.objects[0].mtime_ns, 1255369830'000'000'000);
  EXPECT_EQ(listing.objects[1].path, "a/é");
  EXPECT_EQ(listing.folders, std::vector<std::string>{"a/b/"});
  EXPECT_EQ(listing.continuation, "1ueGcxLPR/x=");
}

TEST(Listing, keeps_keys_that_are_not_encoded) {
  const auto listing = parse_listing(
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key> a+%41 </Key>"
      "<Size>1</Size></Contents></ListBucketResult>");
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->objects[0].path, " a+%41 ");
  EXPECT_EQ(listing->continuation, "");
}

TEST(Listing, keeps_times_within_what_nanoseconds_can_say) {
  for (const char* time : {"0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}) {
    const auto listing = parse_listing(
        fmt::format("<ListBucketResult><Contents><Key>a</Key><LastModified>{}</LastModified>"
                    "<Size>1</Size></Contents></ListBucketResult>",
                    time));
    ASSERT_TRUE(listing.ok());
    EXPECT_EQ(listing->objects[0].mtime_ns < 0, time[0] == '0');
    EXPECT_EQ(std::abs(listing->objects[0].mtime_ns), 9'200'000'000'000'000'000);
  }
}

TEST(Listing, refuses_what_is_none) {
  for (const char* xml :
       {"", "<html/>", "not xml", "<ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"}) {
    ASSERT_FALSE(parse_listing(xml).ok()) << xml;
    EXPECT_EQ(parse_listing(xml).error().code, ErrorCode::corrupt) << xml;
  }
}

TEST(Fault, gives_what_the_document_says) {
  const S3Fault fault = parse_fault(
      "<Error><Code>InvalidRange</Code><Message>No &amp; no</Message>"
      "<ActualObjectSize>7</ActualObjectSize><Region>eu-west-1</Region></Error>");
  EXPECT_EQ(fault.code, "InvalidRange");
  EXPECT_EQ(fault.message, "No & no");
  EXPECT_EQ(fault.actual_size_bytes, 7u);
  EXPECT_EQ(fault.region, "eu-west-1");
  EXPECT_EQ(parse_fault("<html>x").code, "");
  EXPECT_EQ(parse_fault("").code, "");
}

TEST(Multipart, reads_the_id_and_writes_the_parts) {
  EXPECT_EQ(*parse_upload_id("<InitiateMultipartUploadResult><UploadId>a.b_c</UploadId>"
                             "</InitiateMultipartUploadResult>"),
            "a.b_c");
  EXPECT_FALSE(parse_upload_id("<Error/>").ok());
  EXPECT_EQ(parts_document({"\"x\"", "y"}),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>&quot;x&quot;</ETag>"
            "</Part><Part><PartNumber>2</PartNumber><ETag>y</ETag></Part>"
            "</CompleteMultipartUpload>");
}

}  // namespace
}  // namespace smd::storage
