#include "smd/server/body_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::server {
namespace {

class BodyCacheTest : public testing::Test {
 protected:
  // The first letter of the body: that of the version for which it was made.
  std::string get(const std::string& run, const std::string& question, const std::string& version,
                  size_t size = 1000) {
    const auto body = cache.get({run, question}, version, [&]() -> Result<Body> {
      ++made;
      return Body{.plain = std::string(size, version[0]), .compressed = {}};
    });
    return body.ok() ? (*body)->plain.substr(0, 1) : "failed";
  }

  BodyCache cache{10'000};
  int made = 0;
};

TEST_F(BodyCacheTest, makes_a_body_once) {
  EXPECT_EQ(get("run", "/steps", "1"), "1");
  EXPECT_EQ(get("run", "/steps", "1"), "1");
  EXPECT_EQ(made, 1);
}

TEST_F(BodyCacheTest, an_answer_of_a_growing_run_takes_the_place_of_the_one_before) {
  get("run", "/steps", "1");
  const uint64_t bytes = cache.bytes();
  EXPECT_EQ(get("run", "/steps", "2"), "2");
  EXPECT_EQ(cache.bytes(), bytes);
  EXPECT_EQ(get("run", "/steps", "2"), "2");
  EXPECT_EQ(made, 2);
}

TEST_F(BodyCacheTest, forgets_the_bodies_of_runs_that_are_gone) {
  get("a", "/steps", "1");
  const uint64_t bytes = cache.bytes();
  get("b", "/steps", "1");
  get("b", "/metrics", "1");
  cache.keep({"a"});
  EXPECT_EQ(cache.bytes(), bytes);
  get("a", "/steps", "1");
  EXPECT_EQ(made, 3);
}

TEST_F(BodyCacheTest, keeps_what_belongs_to_no_single_run) {
  get("", "/api/rules", "1");
  cache.keep({});
  get("", "/api/rules", "1");
  EXPECT_EQ(made, 1);
}

TEST_F(BodyCacheTest, the_one_that_was_asked_for_longest_ago_makes_room) {
  get("run", "a", "1", 4000);
  get("run", "b", "1", 4000);
  get("run", "a", "1", 4000);
  get("run", "c", "1", 4000);
  EXPECT_LE(cache.bytes(), 10'000);
  get("run", "a", "1", 4000);
  EXPECT_EQ(made, 3);
  get("run", "b", "1", 4000);
  EXPECT_EQ(made, 4);
}

TEST_F(BodyCacheTest, errors_are_not_kept) {
  const auto failed = cache.get({"run", "/steps"}, "1", []() -> Result<Body> {
    return Error{ErrorCode::io, "broken"};
  });
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(cache.bytes(), 0);
  EXPECT_EQ(get("run", "/steps", "1"), "1");
}

}  // namespace
}  // namespace smd::server
