#pragma once

// Where a bucket is reached: region, server and style of its addresses. Pure functions but for
// reading the profile.

#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/s3/options.h"

namespace smd::storage {

struct S3Endpoint {
  std::string url;  // of another store than Amazon's, without '/' at its end; empty: Amazon's
  std::string region;

  // The address of an object, or of the bucket when the key is empty. The bucket stands in the path
  // if `url` is set or if its name has a dot, which certificates do not cover; else in the host.
  std::string address_of(std::string_view bucket, std::string_view key) const;
};

// Region: AWS_REGION, AWS_DEFAULT_REGION, the profile, us-east-1; blank counts as not set.
// Server: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile. invalid_argument if it is no address.
Result<S3Endpoint> find_endpoint(const Variables& variables);

}  // namespace smd::storage
