#include "smd/storage/sync.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/faulty_storage.h"

namespace smd::storage {
namespace {

using Strings = std::vector<std::string>;

class SyncTest : public testing::Test {
 protected:
  SyncTest() {
    std::filesystem::remove_all(root);
    for (const char* path : {"training_job_end.ts", "index/0/1.json", "events/1/1.tfevents",
                             "collections/0/w.json", "claim.smd", "events/2/2.tfevents"}) {
      EXPECT_TRUE(local->put(path, as_bytes(path), Put::always, {}).ok());
    }
  }
  ~SyncTest() override { std::filesystem::remove_all(root); }

  const std::string root = testing::TempDir() + "/smd_sync_" + std::to_string(getpid());
  const std::shared_ptr<Storage> local = local_storage(root);
  FaultyStorage remote;
};

const Strings kOrder = {"collections/0/w.json", "events/1/1.tfevents", "events/2/2.tfevents",
                        "index/0/1.json", "training_job_end.ts"};

TEST_F(SyncTest, sends_data_then_indexes_then_the_marker) {
  const auto report = sync_to(root, remote, {.skip = {"claim.smd"}});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(remote.arrived(), kOrder);
  EXPECT_EQ(report->files_sent, 5);
  EXPECT_EQ(report->bytes_sent, 20u + 19 + 19 + 14 + 19);
  EXPECT_EQ(as_text(*read_all(remote, "index/0/1.json")), "index/0/1.json");
  EXPECT_EQ(local->list("", "")->size(), 6u);
}

TEST_F(SyncTest, skips_what_is_there_with_the_same_size) {
  ASSERT_TRUE(
      remote.put("events/1/1.tfevents", as_bytes("events/1/1.tfevents"), Put::always, {}).ok());
  ASSERT_TRUE(remote.put("index/0/1.json", as_bytes("half"), Put::always, {}).ok());
  std::vector<int64_t> left;
  const auto report = sync_to(root, remote,
                              {.progress =
                                   [&](const SyncProgress& p) {
                                     left.push_back(p.files_left);
                                     return true;
                                   },
                               .skip = {"claim.smd"}});
  EXPECT_EQ(report->files_skipped, 1);
  EXPECT_EQ(report->files_sent, 4);
  EXPECT_EQ(left, (std::vector<int64_t>{4, 3, 2, 1}));
  EXPECT_EQ(as_text(*read_all(remote, "index/0/1.json")), "index/0/1.json");
}

TEST_F(SyncTest, stops_when_told_to_and_goes_on_later) {
  int calls = 0;
  const SyncOptions two{.progress = [&](const SyncProgress&) { return ++calls < 3; },
                        .skip = {"claim.smd"}};
  EXPECT_EQ(sync_to(root, remote, two)->files_sent, 2);
  EXPECT_EQ(sync_to(root, remote, {.skip = {"claim.smd"}})->files_sent, 3);
  EXPECT_EQ(remote.arrived(), kOrder);
}

TEST_F(SyncTest, removes_the_source_only_when_asked) {
  ASSERT_TRUE(sync_to(root, remote, {.skip = {"claim.smd"}, .remove_source = true}).ok());
  ASSERT_EQ(local->list("", "")->size(), 1u);
  EXPECT_EQ((*local->list("", ""))[0].path, "claim.smd");
}

TEST_F(SyncTest, gives_errors_back_and_removes_nothing) {
  remote.fail(true);
  EXPECT_EQ(sync_to(root, remote, {.remove_source = true}).error().code, ErrorCode::io);
  EXPECT_EQ(local->list("", "")->size(), 6u);
  EXPECT_EQ(sync_to(root + "/nowhere", remote).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace smd::storage
