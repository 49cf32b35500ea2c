#include "smd/storage/location.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace smd::storage {
namespace {

TEST(Location, a_scheme_makes_a_uri) {
  EXPECT_TRUE(is_uri("s3://bucket/run"));
  EXPECT_TRUE(is_uri("gopher://x"));
  EXPECT_FALSE(is_uri("runs/first"));
  EXPECT_FALSE(is_uri("/a:/b"));
  EXPECT_FALSE(is_uri(""));
}

TEST(Location, only_a_leading_tilde_alone_is_home) {
  const char* const home = std::getenv("HOME");
  ASSERT_NE(home, nullptr);
  EXPECT_EQ(with_home("~"), home);
  EXPECT_EQ(with_home("~/runs"), std::string(home) + "/runs");
  EXPECT_EQ(with_home("~somebody/runs"), "~somebody/runs");
  EXPECT_EQ(with_home("runs/~/a"), "runs/~/a");
  EXPECT_EQ(with_home(""), "");
}

}  // namespace
}  // namespace smd::storage
