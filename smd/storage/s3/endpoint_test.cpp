#include "smd/storage/s3/endpoint.h"

#include <gtest/gtest.h>

#include <map>

namespace smd::storage {
namespace {

Result<S3Endpoint> with(std::map<std::string, std::string> set) {
  set.emplace("HOME", "/nonexistent");
  return find_endpoint([set](std::string_view name) {
    const auto found = set.find(std::string(name));
    return found == set.end() ? std::string() : found->second;
  });
}

TEST(S3Endpoint, takes_the_region_from_the_first_place_that_names_one) {
  EXPECT_EQ(with({})->region, "us-east-1");
  EXPECT_EQ(with({{"AWS_DEFAULT_REGION", "eu-west-1"}})->region, "eu-west-1");
  EXPECT_EQ(with({{"AWS_REGION", " "}, {"AWS_DEFAULT_REGION", "eu-west-1"}})->region, "eu-west-1");
  EXPECT_EQ(with({{"AWS_REGION", "eu-north-1"}, {"AWS_DEFAULT_REGION", "x"}})->region,
            "eu-north-1");
}

TEST(S3Endpoint, prefers_the_address_that_is_meant_for_s3) {
  EXPECT_EQ(with({})->url, "");
  EXPECT_EQ(with({{"AWS_ENDPOINT_URL", "http://a:1/"}})->url, "http://a:1");
  EXPECT_EQ(with({{"AWS_ENDPOINT_URL", "http://a:1"}, {"AWS_ENDPOINT_URL_S3", "http://b:2"}})->url,
            "http://b:2");
  EXPECT_EQ(with({{"AWS_ENDPOINT_URL", "a:1"}}).error().code, ErrorCode::invalid_argument);
}

TEST(S3Endpoint, puts_the_bucket_where_the_certificate_covers_it) {
  const S3Endpoint amazon = *with({});
  EXPECT_EQ(amazon.address_of("run", "a b/c"), "https://run.s3.us-east-1.amazonaws.com/a%20b/c");
  EXPECT_EQ(amazon.address_of("my.run", "x"), "https://s3.us-east-1.amazonaws.com/my.run/x");
  EXPECT_EQ(with({{"AWS_REGION", "cn-north-1"}})->address_of("run", ""),
            "https://run.s3.cn-north-1.amazonaws.com.cn/");
  EXPECT_EQ(with({{"AWS_ENDPOINT_URL", "http://a:1"}})->address_of("run", "x"), "http://a:1/run/x");
}

}  // namespace
}  // namespace smd::storage
