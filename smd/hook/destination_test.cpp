#include "smd/hook/destination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "smd/format/file_name.h"

namespace smd {
namespace {

using testing::HasSubstr;

class DestinationTest : public testing::Test {
 protected:
  ~DestinationTest() override { std::filesystem::remove_all(root); }
  Environment environment(Environment::Variables more = {}) const {
    more.emplace("SMDEBUG_SPOOL_DIR", root);
    more.emplace("HOME", "/nonexistent");
    return Environment(std::move(more));
  }
  const std::string root = testing::TempDir() + "/smd_destination_" + std::to_string(getpid());
};

TEST_F(DestinationTest, a_directory_needs_no_spool) {
  const Environment plain = environment();
  const auto place = open_destination(root + "/run", {.environment = plain, .s3 = {}});
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->spool, nullptr);
  EXPECT_EQ(place->storage->name(), root + "/run");
}

TEST_F(DestinationTest, an_object_store_is_behind_a_spool_unless_nothing_is_written) {
  const Environment plain = environment();
  const auto place = open_destination("s3://bucket/a/run", {.environment = plain, .s3 = {}});
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->spool, place->storage);
  EXPECT_EQ(place->storage->name(), "s3://bucket/a/run");
  EXPECT_THAT(place->spool->directory(), HasSubstr(root + "/bucket/a-run-"));
  const auto dry =
      open_destination("s3://bucket/a/run", {.environment = plain, .s3 = {}, .writes = false});
  EXPECT_EQ(dry->spool, nullptr);
}

TEST_F(DestinationTest, wrong_settings_are_explained) {
  const Environment soon = environment({{"SMDEBUG_SPOOL_DRAIN_SECS", "soon"}});
  EXPECT_THAT(open_destination("s3://bucket/run", {.environment = soon, .s3 = {}}).error().message,
              HasSubstr("SMDEBUG_SPOOL_DRAIN_SECS is 'soon'"));
  const Environment endpoint = environment({{"AWS_ENDPOINT_URL", "localhost"}});
  EXPECT_THAT(
      open_destination("s3://bucket/run", {.environment = endpoint, .s3 = {}}).error().message,
      HasSubstr("AWS_ENDPOINT_URL is 'localhost'"));
}

TEST(CheckUnfinished, refuses_a_place_with_an_end_marker) {
  const auto log = null_log();
  const auto place = storage::memory_storage();
  EXPECT_TRUE(check_unfinished(*place, *log).ok());
  ASSERT_TRUE(place->put(format::kEndMarker, {}, storage::Put::always, {}).ok());
  EXPECT_EQ(check_unfinished(*place, *log).error().code, ErrorCode::closed);
}

TEST(CheckLayout, refuses_a_place_with_steps_of_the_other_layout) {
  for (const RunLayout held : {RunLayout::original, RunLayout::packed}) {
    const bool packed = held == RunLayout::packed;
    const Destination place{
        .storage = storage::memory_storage(), .spool = nullptr, .remote = nullptr};
    EXPECT_TRUE(check_layout(place, RunLayout::original).ok());
    EXPECT_TRUE(check_layout(place, RunLayout::packed).ok());
    const std::string file = packed ? "v2/log/w.1/00000000" : format::index_file_name(0, "w");
    ASSERT_TRUE(place.storage->put(file, {}, storage::Put::always, {}).ok());
    EXPECT_TRUE(check_layout(place, held).ok());
    const Status refused = check_layout(place, packed ? RunLayout::original : RunLayout::packed);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, HasSubstr("choose another directory"));
  }
}

}  // namespace
}  // namespace smd
