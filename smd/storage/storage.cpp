#include "smd/storage/storage.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/storage/backends/s3.h"
#include "smd/storage/internal/too_large.h"
#include "smd/storage/location.h"

namespace smd::storage {

Result<std::unique_ptr<AppendFile>> Storage::append(std::string_view path) {
  return Error{ErrorCode::unsupported,
               fmt::format("Files in {} appear whole and cannot grow: {}", name(), path)};
}

namespace {
Error no_versions(const Storage& storage, std::string_view path) {
  return {ErrorCode::unsupported,
          fmt::format("{} cannot tell whether a file has changed: {}", storage.name(), path)};
}
}  // namespace

Result<std::optional<VersionedFile>> Storage::read_version(std::string_view path, std::string_view,
                                                           uint64_t) {
  return no_versions(*this, path);
}

Result<std::optional<std::string>> Storage::replace(std::string_view path, ByteSpan,
                                                    std::string_view) {
  return no_versions(*this, path);
}

Result<Bytes> read_all(Storage& storage, std::string_view path, uint64_t most_bytes) {
  SMD_TRY(auto file, storage.open(path));
  SMD_TRY(const uint64_t size, file->size());
  if (size > most_bytes) return too_large(size, path);
  Bytes bytes;
  try {
    bytes.resize(size);
  } catch (const std::exception&) {  // there is no other way to be told
    return Error{ErrorCode::io,
                 fmt::format("There is no memory for a file of {} bytes: {}", size, path)};
  }
  SMD_TRY(const size_t got, file->read_at(0, bytes));
  bytes.resize(got);
  return bytes;
}

Status check_path(std::string_view path) {
  bool bad = path.empty() || path.find('\0') != std::string_view::npos;
  for (size_t at = 0; at <= path.size();) {
    const size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    bad = bad || part.empty() || part == "." || part == "..";
    at = slash + 1;
  }
  if (bad) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' is not a path inside a run.", path)};
  }
  return {};
}

bool is_object_store(std::string_view uri) { return uri.starts_with("s3:/"); }

Result<std::shared_ptr<Storage>> open_storage(std::string_view uri) {
  return open_storage(uri, S3Options());
}

Result<std::shared_ptr<Storage>> open_storage(std::string_view uri, const S3Options& options) {
  if (is_object_store(uri)) return s3_storage(uri, options);
  if (is_uri(uri)) {
    return Error{ErrorCode::unsupported,
                 fmt::format("'{}' cannot be used: runs are stored in local directories and at "
                             "s3://bucket/prefix.",
                             uri)};
  }
  if (uri.empty()) {
    return Error{ErrorCode::invalid_argument, "The output directory must not be empty."};
  }
  return local_storage(with_home(std::string(uri)));
}

}  // namespace smd::storage
