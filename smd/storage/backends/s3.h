#pragma once

// A run in an object store that speaks S3: Amazon's, MinIO, Ceph and the like. Thread-safe.
// Objects of up to S3Options::part_bytes cost one request to write; larger ones go in parts, one of
// which is in memory at a time. open() sends nothing: a missing file shows when it is first used.

#include <memory>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/s3/bucket.h"
#include "smd/storage/s3/options.h"
#include "smd/storage/s3/uri.h"
#include "smd/storage/storage.h"

namespace smd::storage {

// `uri`: s3://bucket/prefix. Sends nothing.
Result<std::shared_ptr<Storage>> s3_storage(std::string_view uri, S3Options options = {});
std::shared_ptr<Storage> s3_storage(std::shared_ptr<S3Bucket> bucket, const S3Uri& place);

}  // namespace smd::storage
