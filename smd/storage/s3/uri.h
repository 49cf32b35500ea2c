#pragma once

// s3://bucket/prefix. Pure functions.

#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd::storage {

struct S3Uri {
  std::string bucket;
  std::string prefix;  // no '/' at its ends, none twice; may be empty

  std::string text() const;
  bool operator==(const S3Uri&) const = default;
};

// invalid_argument when the scheme is not s3:// or the bucket's name cannot be one.
Result<S3Uri> parse_s3_uri(std::string_view uri);

}  // namespace smd::storage
