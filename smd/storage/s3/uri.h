#pragma once

// s3://bucket/prefix, and text as it stands in addresses. Pure functions.

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

// Every byte but letters, digits and -._~ as %XX; also '/' unless it is kept.
std::string percent_encoded(std::string_view text, bool keep_slashes = false);
// The reverse; '+' is a space. What is no valid escape stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace smd::storage
