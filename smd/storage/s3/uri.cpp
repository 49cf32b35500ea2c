#include "smd/storage/s3/uri.h"

#include <fmt/format.h>

#include <algorithm>

namespace smd::storage {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kShortestBucket = 3;
constexpr size_t kLongestBucket = 63;

// Capitals and '_' are in old buckets and in stores that are not Amazon's.
bool is_allowed(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

bool is_bucket_name(std::string_view name) {
  return name.size() >= kShortestBucket && name.size() <= kLongestBucket &&
         std::ranges::all_of(name, is_allowed);
}

}  // namespace

std::string S3Uri::text() const {
  return prefix.empty() ? fmt::format("{}{}", kScheme, bucket)
                        : fmt::format("{}{}/{}", kScheme, bucket, prefix);
}

Result<S3Uri> parse_s3_uri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' is no place in S3; expected s3://bucket/prefix.", uri)};
  }
  const std::string_view rest = uri.substr(kScheme.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  S3Uri parsed{.bucket = std::string(rest.substr(0, slash)), .prefix = {}};
  if (!is_bucket_name(parsed.bucket)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' in '{}' is not the name of a bucket: it needs 3 to 63 letters, "
                             "digits, '-' or '.'.",
                             parsed.bucket, uri)};
  }
  for (char c : rest.substr(slash)) {
    if (c != '/' || (!parsed.prefix.empty() && parsed.prefix.back() != '/')) parsed.prefix += c;
  }
  if (parsed.prefix.ends_with('/')) parsed.prefix.pop_back();
  return parsed;
}

}  // namespace smd::storage
