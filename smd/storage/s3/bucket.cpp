#include "smd/storage/s3/bucket.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "smd/storage/internal/too_large.h"
#include "smd/storage/s3/ca_file.h"

namespace smd::storage {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The total of "bytes 0-9/100" or "bytes */100".
std::optional<uint64_t> total_of(std::string_view content_range) {
  const size_t slash = content_range.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return number(content_range.substr(slash + 1));
}

constexpr int kNotImplemented = 501;

}  // namespace

Result<std::shared_ptr<S3Bucket>> S3Bucket::open(std::string name, S3Options options,
                                                 std::shared_ptr<Http> http) {
  SMD_TRY(S3Endpoint endpoint, find_endpoint(options.variables));
  if (!http) {
    http = curl_http(options.interrupt, find_ca_file(options.variables, built_in_ca_file()));
  }
  return std::shared_ptr<S3Bucket>(
      new S3Bucket(std::move(name), std::move(endpoint), std::move(options), std::move(http)));
}

Result<S3Answer> S3Bucket::call(const S3Call& call) {
  SMD_TRY(S3Answer answer, client_.send(call));
  if (!answer.ok()) return client_.error_of(call, answer);
  return answer;
}

Result<S3Bucket::Piece> S3Bucket::get(std::string_view key, uint64_t offset,
                                      std::span<std::byte> into) {
  SMD_CHECK(!into.empty());
  const S3Call call{
      .kind = "GET",
      .method = "GET",
      .key = std::string(key),
      .headers = {{"Range", fmt::format("bytes={}-{}", offset, offset + into.size() - 1)}},
      .into = into};
  SMD_TRY(const S3Answer answer, client_.send(call));
  if (answer.http.status == 416) {  // there is nothing from this offset on
    auto total = total_of(answer.http.header("content-range"));
    if (!total) total = answer.fault.actual_size_bytes;
    if (total) return Piece{.got_bytes = 0, .object_bytes = *total};
    SMD_TRY(const FileInfo info, head(key));
    return Piece{.got_bytes = 0, .object_bytes = static_cast<uint64_t>(info.size_bytes)};
  }
  if (!answer.ok()) return client_.error_of(call, answer);
  // A server that knows no ranges, or an empty object.
  if (answer.http.status == 200) {
    const auto total = number(answer.http.header("content-length"));
    if (total && offset >= *total) return Piece{.got_bytes = 0, .object_bytes = *total};
    if (total && offset == 0)
      return Piece{.got_bytes = answer.http.got_bytes, .object_bytes = *total};
    return Error{ErrorCode::unsupported,
                 fmt::format("The server cannot read a part of an object: s3://{}/{}",
                             client_.bucket(), key)};
  }
  const auto total = total_of(answer.http.header("content-range"));
  if (!total) {
    return Error{ErrorCode::corrupt, fmt::format("The answer does not say how large the object is: "
                                                 "s3://{}/{}",
                                                 client_.bucket(), key)};
  }
  return Piece{.got_bytes = answer.http.got_bytes, .object_bytes = *total};
}

Result<FileInfo> S3Bucket::head(std::string_view key) {
  const S3Call call{.kind = "HEAD", .method = "HEAD", .key = std::string(key)};
  SMD_TRY(const S3Answer answer, client_.send(call));
  if (answer.http.status == 400 || answer.http.status == 403) {
    // The refusal has no text: a GET tells why.
    std::array<std::byte, 1> nothing{};
    SMD_RETURN_IF_ERROR(get(key, 0, nothing));
  }
  if (!answer.ok()) return client_.error_of(call, answer);
  const auto size = number(answer.http.header("content-length"));
  const time_t time = curl_getdate(answer.http.header("last-modified").c_str(), nullptr);
  return FileInfo{.path = std::string(key),
                  .size_bytes = static_cast<int64_t>(size.value_or(0)),
                  .mtime_ns = std::max<int64_t>(time, 0) * kNanosPerSecond};
}

Error S3Bucket::refusal_of(const S3Call& call, const S3Answer& answer) const {
  const Error error = client_.error_of(call, answer);
  if (answer.http.status != kNotImplemented) return error;
  return {ErrorCode::unsupported,
          fmt::format("The store knows no conditional writes. {}", error.message)};
}

Status S3Bucket::put(std::string_view key, ByteSpan content) {
  SMD_RETURN_IF_ERROR(
      call({.kind = "PUT", .method = "PUT", .key = std::string(key), .body = content}));
  return {};
}

Result<bool> S3Bucket::put_if_absent(std::string_view key, ByteSpan content) {
  const S3Call call{.kind = "PUT",
                    .method = "PUT",
                    .key = std::string(key),
                    .headers = {{"If-None-Match", "*"}},
                    .body = content};
  SMD_TRY(const S3Answer answer, client_.send(call));
  if (answer.ok()) return true;
  if (answer.http.status != 412) return refusal_of(call, answer);
  if (!answer.uncertain) return false;
  // A lost answer was perhaps ours: then the object is, too.
  Bytes there(content.size() + 1);
  SMD_TRY(const Piece piece, get(key, 0, there));
  return piece.object_bytes == content.size() &&
         std::equal(content.begin(), content.end(), there.begin());
}

Result<std::optional<VersionedFile>> S3Bucket::get_if_changed(std::string_view key,
                                                              std::string_view known,
                                                              uint64_t most_bytes) {
  VersionedFile file;
  file.content.resize(most_bytes);
  S3Call call{.kind = "GET",
              .method = "GET",
              .key = std::string(key),
              .headers = {{"Range", fmt::format("bytes=0-{}", most_bytes - 1)}},
              .into = file.content};
  if (!known.empty()) call.headers.emplace_back("If-None-Match", known);
  SMD_TRY(const S3Answer answer, client_.send(call));
  if (answer.http.status == 304) return std::optional<VersionedFile>();
  if (answer.http.status == 416) {  // an empty object
    file.content.clear();
    return std::optional(std::move(file));
  }
  if (!answer.ok()) return client_.error_of(call, answer);
  const auto total = answer.http.status == 206 ? total_of(answer.http.header("content-range"))
                                               : number(answer.http.header("content-length"));
  if (total && *total > most_bytes) {
    return too_large(*total, fmt::format("s3://{}/{}", client_.bucket(), key));
  }
  file.content.resize(answer.http.got_bytes);
  file.version = answer.http.header("etag");
  return std::optional(std::move(file));
}

Result<std::optional<std::string>> S3Bucket::put_if_version(std::string_view key, ByteSpan content,
                                                            std::string_view version) {
  const std::pair<std::string, std::string> condition =
      version.empty() ? std::pair("If-None-Match", "*")
                      : std::pair("If-Match", std::string(version));
  const S3Call call{.kind = "PUT",
                    .method = "PUT",
                    .key = std::string(key),
                    .headers = {condition},
                    .body = content};
  SMD_TRY(const S3Answer answer, client_.send(call));
  if (answer.ok()) return std::optional(answer.http.header("etag"));
  const bool gone = answer.http.status == 404 && answer.fault.code == "NoSuchKey";
  if (answer.http.status != 412 && !gone) return refusal_of(call, answer);
  if (!answer.uncertain || gone) return std::optional<std::string>();
  // A lost answer was perhaps ours: then the object is, too.
  auto there = get_if_changed(key, "", content.size() + 1);
  if (!there.ok()) {
    if (there.error().code != ErrorCode::corrupt) return there.error();
    return std::optional<std::string>();  // longer than ours
  }
  if (!std::ranges::equal((*there)->content, content)) return std::optional<std::string>();
  return std::optional(std::move((*there)->version));
}

Status S3Bucket::remove(std::string_view key) {
  const auto done = call({.kind = "DELETE", .method = "DELETE", .key = std::string(key)});
  if (!done.ok() && done.error().code != ErrorCode::not_found) return done.error();
  return {};
}

Result<S3Listing> S3Bucket::list(std::string_view prefix, std::string_view start_after,
                                 std::string_view delimiter) {
  S3Listing all;
  std::string continuation;
  do {
    S3Call request{.kind = "LIST",
                   .method = "GET",
                   .query = {{"list-type", "2"},
                             {"encoding-type", "url"},
                             {"max-keys", "1000"},
                             {"prefix", std::string(prefix)}}};
    const auto add = [&](const char* name, std::string_view value) {
      if (!value.empty()) request.query.emplace_back(name, value);
    };
    add("delimiter", delimiter);
    add("start-after", continuation.empty() ? start_after : "");
    add("continuation-token", continuation);
    SMD_TRY(const S3Answer answer, call(request));
    SMD_TRY(S3Listing page, parse_listing(answer.http.body));
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(all.objects));
    std::move(page.folders.begin(), page.folders.end(), std::back_inserter(all.folders));
    continuation = std::move(page.continuation);
  } while (!continuation.empty());
  return all;
}

Result<std::string> S3Bucket::begin_upload(std::string_view key) {
  SMD_TRY(const S3Answer answer, call({.kind = "POST",
                                       .method = "POST",
                                       .key = std::string(key),
                                       .query = {{"uploads", ""}},
                                       .headers = {{"Content-Type", "binary/octet-stream"}}}));
  return parse_upload_id(answer.http.body);
}

Result<std::string> S3Bucket::upload_part(std::string_view key, const std::string& upload,
                                          size_t number, ByteSpan content) {
  SMD_TRY(const S3Answer answer,
          call({.kind = "PUT",
                .method = "PUT",
                .key = std::string(key),
                .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}},
                .body = content}));
  return answer.http.header("etag");
}

Status S3Bucket::end_upload(std::string_view key, const std::string& upload,
                            const std::vector<std::string>& etags, uint64_t total_bytes) {
  const std::string document = parts_document(etags);
  const S3Call call{.kind = "POST",
                    .method = "POST",
                    .key = std::string(key),
                    .query = {{"uploadId", upload}},
                    .headers = {{"Content-Type", "application/xml"}},
                    .body = as_bytes(document)};
  SMD_TRY(const S3Answer answer, client_.send(call));
  if (answer.ok()) return {};
  if (answer.fault.code == "NoSuchUpload" && answer.uncertain) {
    // Ended by an earlier try whose answer was lost.
    const auto info = head(key);
    if (info.ok() && info->size_bytes == static_cast<int64_t>(total_bytes)) return {};
  }
  return client_.error_of(call, answer);
}

Status S3Bucket::abort_upload(std::string_view key, const std::string& upload) {
  SMD_RETURN_IF_ERROR(call({.kind = "DELETE",
                            .method = "DELETE",
                            .key = std::string(key),
                            .query = {{"uploadId", upload}}}));
  return {};
}

}  // namespace smd::storage
