#pragma once

// The XML that S3 answers with. Pure functions: text in, values out.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd::storage {

// One page of ListObjectsV2.
struct S3Listing {
  std::vector<FileInfo> objects;     // path is the whole key
  std::vector<std::string> folders;  // common prefixes, when a delimiter was given
  std::string continuation;          // of the next page; empty: this is the last
};
Result<S3Listing> parse_listing(std::string_view xml);

struct S3Fault {
  std::string code;  // "NoSuchKey"; empty: the answer says nothing
  std::string message;
  std::string region;                         // where the bucket is, if it says so
  std::optional<uint64_t> actual_size_bytes;  // with InvalidRange
};
// Anything that is no error document gives an empty fault.
S3Fault parse_fault(std::string_view xml);

// Of CreateMultipartUpload.
Result<std::string> parse_upload_id(std::string_view xml);
// The body of CompleteMultipartUpload: part 1 has the first tag.
std::string parts_document(const std::vector<std::string>& etags);

}  // namespace smd::storage
