#include "smd/storage/s3/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>

#include "smd/base/percent.h"
#include "smd/storage/s3/credentials.h"

namespace smd::storage {
namespace {

constexpr double kNanos = 1e9;
constexpr double kMaxSecs = 9.2e9;  // As many as nanoseconds in 64 bits can say.

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool load(pugi::xml_document& document, std::string_view xml) {
  // Keys may begin or end with white space.
  constexpr unsigned kOptions = pugi::parse_default | pugi::parse_ws_pcdata_single;
  return static_cast<bool>(document.load_buffer(xml.data(), xml.size(), kOptions));
}

Error unreadable(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("S3 answered with something that is no {}.", what)};
}

}  // namespace

Result<S3Listing> parse_listing(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return unreadable("listing");
  const pugi::xml_node root = document.child("ListBucketResult");
  if (!root) return unreadable("listing");
  const bool encoded = std::string_view(root.child_value("EncodingType")) == "url";
  const auto text = [&](const char* raw) {
    return encoded ? percent_decoded(raw, true).value_or(raw) : std::string(raw);
  };
  S3Listing listing;
  for (const pugi::xml_node entry : root.children("Contents")) {
    const auto size = number<int64_t>(entry.child_value("Size"));
    if (!entry.child("Key") || !size || *size < 0) return unreadable("listing");
    const double secs = std::clamp(parse_iso_time(entry.child_value("LastModified")).value_or(0),
                                   -kMaxSecs, kMaxSecs);
    listing.objects.push_back({.path = text(entry.child_value("Key")),
                               .size_bytes = *size,
                               .mtime_ns = static_cast<int64_t>(secs * kNanos)});
  }
  for (const pugi::xml_node entry : root.children("CommonPrefixes")) {
    listing.folders.push_back(text(entry.child_value("Prefix")));
  }
  if (std::string_view(root.child_value("IsTruncated")) == "true") {
    listing.continuation = root.child_value("NextContinuationToken");
    if (listing.continuation.empty()) return unreadable("complete listing");
  }
  return listing;
}

S3Fault parse_fault(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return {};
  const pugi::xml_node root = document.child("Error");
  return {.code = root.child_value("Code"),
          .message = root.child_value("Message"),
          .region = root.child_value("Region"),
          .actual_size_bytes = number<uint64_t>(root.child_value("ActualObjectSize"))};
}

Result<std::string> parse_upload_id(std::string_view xml) {
  pugi::xml_document document;
  if (!load(document, xml)) return unreadable("upload");
  std::string id = document.child("InitiateMultipartUploadResult").child_value("UploadId");
  if (id.empty()) return unreadable("upload");
  return id;
}

std::string parts_document(const std::vector<std::string>& etags) {
  std::string xml = "<CompleteMultipartUpload>";
  for (size_t i = 0; i < etags.size(); ++i) {
    std::string etag;
    for (const char c : etags[i]) {
      if (c == '"') {
        etag += "&quot;";
      } else if (c == '&') {
        etag += "&amp;";
      } else if (c == '<') {
        etag += "&lt;";
      } else {
        etag += c;
      }
    }
    fmt::format_to(std::back_inserter(xml),
                   "<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, etag);
  }
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace smd::storage
