#include "smd/storage/s3/endpoint.h"

#include <fmt/format.h>

#include <initializer_list>

#include "smd/base/percent.h"
#include "smd/storage/s3/profile.h"

namespace smd::storage {
namespace {

constexpr std::string_view kDefaultRegion = "us-east-1";

// The first that is not blank, without white space around it.
std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts) {
    const size_t first = text.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
  }
  return {};
}

}  // namespace

std::string S3Endpoint::address_of(std::string_view bucket, std::string_view key) const {
  const std::string path = percent_encoded(key, "/");
  if (!url.empty()) return fmt::format("{}/{}/{}", url, bucket, path);
  const std::string_view suffix = region.starts_with("cn-") ? ".cn" : "";
  if (bucket.find('.') != std::string_view::npos) {
    return fmt::format("https://s3.{}.amazonaws.com{}/{}/{}", region, suffix, bucket, path);
  }
  return fmt::format("https://{}.s3.{}.amazonaws.com{}/{}", bucket, region, suffix, path);
}

Result<S3Endpoint> find_endpoint(const Variables& variables) {
  const Profile profile = load_profile(variables);
  S3Endpoint endpoint;
  endpoint.region = first_of({variables("AWS_REGION"), variables("AWS_DEFAULT_REGION"),
                              profile.get("region"), std::string(kDefaultRegion)});
  endpoint.url = first_of({variables("AWS_ENDPOINT_URL_S3"), variables("AWS_ENDPOINT_URL"),
                           profile.s3_endpoint_url, profile.get("endpoint_url")});
  while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  if (!endpoint.url.empty() && !endpoint.url.starts_with("http://") &&
      !endpoint.url.starts_with("https://")) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("AWS_ENDPOINT_URL is '{}'; expected an address such as "
                             "http://127.0.0.1:9000.",
                             endpoint.url)};
  }
  return endpoint;
}

}  // namespace smd::storage
