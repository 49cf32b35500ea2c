#pragma once

// The objects of one bucket by their keys. Thread-safe.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/storage/s3/answer.h"
#include "smd/storage/s3/client.h"
#include "smd/storage/s3/options.h"
#include "smd/storage/storage.h"

namespace smd::storage {

class S3Bucket final {
 public:
  // Finds region, endpoint and credentials; sends nothing. `http`: empty for the network.
  static Result<std::shared_ptr<S3Bucket>> open(std::string name, S3Options options = {},
                                                std::shared_ptr<Http> http = {});

  struct Piece {
    size_t got_bytes = 0;
    uint64_t object_bytes = 0;  // the size of the whole object
  };
  // Fills `into`, which is not empty, from `offset`; fewer bytes only at the end of the object.
  Result<Piece> get(std::string_view key, uint64_t offset, std::span<std::byte> into);
  Result<FileInfo> head(std::string_view key);
  Status put(std::string_view key, ByteSpan content);
  // False: there is such an object.
  Result<bool> put_if_absent(std::string_view key, ByteSpan content);
  // The whole object, of at most `most_bytes`, with its ETag as version; nullopt: it still has the
  // version `known`, if that is not empty.
  Result<std::optional<VersionedFile>> get_if_changed(std::string_view key, std::string_view known,
                                                      uint64_t most_bytes);
  // The new version; nullopt: the object has another one, or there is one (empty `version`).
  Result<std::optional<std::string>> put_if_version(std::string_view key, ByteSpan content,
                                                    std::string_view version);
  // Success also if there is no such object.
  Status remove(std::string_view key);
  // All pages. With a delimiter, what lies deeper is summed up in `folders`.
  Result<S3Listing> list(std::string_view prefix, std::string_view start_after = {},
                         std::string_view delimiter = {});

  // A large object in parts, numbered from 1; all but the last have at least 5 MiB.
  Result<std::string> begin_upload(std::string_view key);
  Result<std::string> upload_part(std::string_view key, const std::string& upload, size_t number,
                                  ByteSpan content);
  Status end_upload(std::string_view key, const std::string& upload,
                    const std::vector<std::string>& etags, uint64_t total_bytes);
  Status abort_upload(std::string_view key, const std::string& upload);

  size_t part_bytes() const { return client_.options().part_bytes; }

 private:
  S3Bucket(std::string name, S3Endpoint endpoint, S3Options options, std::shared_ptr<Http> http)
      : client_(std::move(name), std::move(endpoint), std::move(options), std::move(http)) {}
  // The answer, or its refusal as an error.
  Result<S3Answer> call(const S3Call& call);
  // Of a conditional write. unsupported: the store knows none.
  Error refusal_of(const S3Call& call, const S3Answer& answer) const;

  S3Client client_;
};

}  // namespace smd::storage
