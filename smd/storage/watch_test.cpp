#include "smd/storage/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "smd/storage/storage.h"

namespace smd::storage {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class WatchTest : public testing::Test {
 protected:
  WatchTest() {
    fs::remove_all(root);
    fs::create_directories(root);
  }
  ~WatchTest() override { fs::remove_all(root); }

  std::unique_ptr<Watch> watch() {
    const std::vector<std::string> folders = {"index", "collections"};
    auto made = storage->watch(folders);
    EXPECT_NE(made, nullptr);
    return made;
  }
  void put(std::string_view path) {
    ASSERT_TRUE(storage->put(path, as_bytes("x"), Put::always, {}).ok());
  }
  static std::vector<std::string> changes(Watch& watch) {
    auto found = watch.changes();
    EXPECT_TRUE(found.ok() && found->has_value());
    auto paths = std::move(**found);
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    return paths;
  }

  const std::string root =
      (fs::path(testing::TempDir()) / ("smd_watch_" + std::to_string(::getpid()))).string();
  const std::shared_ptr<Storage> storage = local_storage(root);
};

TEST_F(WatchTest, reports_files_in_the_root_and_below_the_folders) {
  put("index/0/old");
  const auto watched = watch();
  EXPECT_THAT(changes(*watched), IsEmpty()) << "what was there before is listed, not reported";
  put("index/0/a");
  put("marker");
  put("events/0/unwatched");
  put("collections/0/c");
  EXPECT_THAT(changes(*watched), ElementsAre("collections/0/c", "index/0/a", "marker"));
  EXPECT_THAT(changes(*watched), IsEmpty());
}

TEST_F(WatchTest, follows_new_folders_of_any_depth) {
  const auto watched = watch();
  put("index/1/2/3/a");
  EXPECT_THAT(changes(*watched), ElementsAre("index/1/2/3/a"));
  put("index/1/2/3/b");
  put("index/1/2/c");
  EXPECT_THAT(changes(*watched), ElementsAre("index/1/2/3/b", "index/1/2/c"));
}

TEST_F(WatchTest, a_file_is_reported_when_it_has_its_final_name) {
  const auto watched = watch();
  auto file = storage->create("index/0/a", {});
  ASSERT_TRUE(file.ok() && (*file)->append({{as_bytes("half")}}).ok());
  EXPECT_THAT(changes(*watched), IsEmpty());
  ASSERT_TRUE((*file)->commit().ok());
  EXPECT_THAT(changes(*watched), ElementsAre("index/0/a"));
}

TEST_F(WatchTest, a_file_that_is_written_in_place_is_reported_when_it_is_closed) {
  put("index/0/a");
  const auto watched = watch();
  {
    std::ofstream out(root + "/index/0/a", std::ios::app);
    out << "more";
  }
  EXPECT_THAT(changes(*watched), Contains("index/0/a"));
}

TEST_F(WatchTest, wakes_a_waiting_reader) {
  const auto watched = watch();
  const auto now = std::chrono::steady_clock::now;
  EXPECT_FALSE(watched->wait(now())) << "nothing happened";
  std::thread writer([&] { put("index/0/a"); });
  EXPECT_TRUE(watched->wait(now() + std::chrono::minutes(1)));
  writer.join();
  EXPECT_THAT(changes(*watched), Not(IsEmpty()));
}

TEST_F(WatchTest, nothing_is_lost_when_writers_race_with_the_watch) {
  const auto watched = watch();
  constexpr int kFiles = 500;
  std::thread writer([&] {
    for (int i = 0; i < kFiles; ++i) {
      put("index/" + std::to_string(i % 50) + "/" + std::to_string(i));
    }
  });
  std::set<std::string> seen;
  while (seen.size() < kFiles) {
    if (!watched->wait(std::chrono::steady_clock::now() + std::chrono::seconds(20))) break;
    for (const auto& path : changes(*watched)) seen.insert(path);
  }
  writer.join();
  EXPECT_EQ(seen.size(), static_cast<size_t>(kFiles));
}

TEST_F(WatchTest, there_is_none_without_a_directory) {
  const std::vector<std::string> folders = {"index"};
  EXPECT_EQ(local_storage(root + "/absent")->watch(folders), nullptr);
  EXPECT_EQ(memory_storage()->watch(folders), nullptr);
}

TEST_F(WatchTest, links_in_circles_are_not_followed) {
  put("index/0/a");
  fs::create_directory_symlink(root + "/index", root + "/index/0/loop");
  const auto watched = watch();
  put("index/0/b");
  EXPECT_THAT(changes(*watched), ElementsAre("index/0/b"));
  EXPECT_EQ(storage->list("index", "")->size(), 2u);
}

TEST_F(WatchTest, a_link_that_leads_out_of_the_directory_is_not_read) {
  const std::string secret = root + "_secret";
  std::ofstream(secret) << "secret";
  put("events/a");
  fs::create_symlink(secret, root + "/events/b");
  fs::create_symlink("a", root + "/events/c");
  EXPECT_FALSE(read_all(*storage, "events/b").ok());
  EXPECT_TRUE(read_all(*storage, "events/c").ok()) << "inside is fine";
  fs::remove(secret);
}

TEST_F(WatchTest, reports_files_that_grow_where_it_was_asked_to) {
  const std::vector<std::string> folders = {"v2"};
  const std::vector<std::string> growing = {"v2/log"};
  const auto watched = storage->watch(folders, growing);
  ASSERT_NE(watched, nullptr);
  auto log = storage->append("v2/log/w/0");
  auto segment = storage->append("v2/seg/w/0");
  ASSERT_TRUE(log.ok() && segment.ok());
  EXPECT_THAT(changes(*watched), ElementsAre("v2/log/w/0", "v2/seg/w/0"));
  EXPECT_TRUE((*segment)->append({{as_bytes("x")}}).ok());
  EXPECT_THAT(changes(*watched), IsEmpty());
  EXPECT_TRUE((*log)->append({{as_bytes("x")}}).ok());
  EXPECT_THAT(changes(*watched), ElementsAre("v2/log/w/0"));
}

}  // namespace
}  // namespace smd::storage
