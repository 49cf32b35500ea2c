#include "smd/storage/s3/uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace smd::storage {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kShortestBucket = 3;
constexpr size_t kLongestBucket = 63;

bool is_plain(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

bool is_bucket_name(std::string_view name) {
  // Capitals and '_' are in old buckets and in stores that are not Amazon's.
  return name.size() >= kShortestBucket && name.size() <= kLongestBucket &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return is_plain(c) && c != '~'; });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
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

std::string percent_encoded(std::string_view text, bool keep_slashes) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte) || (keep_slashes && c == '/')) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", byte);
    }
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i] == '+' ? ' ' : text[i];
  }
  return out;
}

}  // namespace smd::storage
