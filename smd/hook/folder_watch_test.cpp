#include "smd/hook/folder_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace smd {
namespace {

class FolderWatchTest : public testing::Test {
 protected:
  FolderWatchTest() {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~FolderWatchTest() override { std::filesystem::remove_all(folder); }
  void write(const std::string& name) const { std::ofstream(folder + "/" + name) << "x"; }
  static bool nothing(std::string_view) { return false; }
  const std::string folder = testing::TempDir() + "/smd_watch_" + std::to_string(getpid());
};

TEST_F(FolderWatchTest, each_change_is_told_once) {
  write("old");
  FolderWatch watch(folder);
  EXPECT_FALSE(watch.changed(nothing));
  write("new");
  EXPECT_TRUE(watch.changed(nothing));
  EXPECT_FALSE(watch.changed(nothing));
  write("old");
  EXPECT_TRUE(watch.changed(nothing)) << "written again";
  std::filesystem::rename(folder + "/old", folder + "/renamed");
  EXPECT_TRUE(watch.changed(nothing));
  std::filesystem::remove(folder + "/renamed");
  EXPECT_TRUE(watch.changed(nothing));
}

TEST_F(FolderWatchTest, a_file_that_is_being_written_does_not_count_yet) {
  FolderWatch watch(folder);
  std::ofstream file(folder + "/large");
  file << "half" << std::flush;
  EXPECT_FALSE(watch.changed(nothing));
  file.close();
  EXPECT_TRUE(watch.changed(nothing));
}

TEST_F(FolderWatchTest, folders_below_are_watched_old_and_new) {
  std::filesystem::create_directories(folder + "/a/b");
  FolderWatch watch(folder);
  write("a/b/c");
  EXPECT_TRUE(watch.changed(nothing));
  std::filesystem::create_directories(folder + "/step-1/deep");
  EXPECT_TRUE(watch.changed(nothing));
  write("step-1/deep/model");
  EXPECT_TRUE(watch.changed(nothing));
}

TEST_F(FolderWatchTest, ignored_names_do_not_count) {
  FolderWatch watch(folder);
  const auto ours = [](std::string_view name) { return name == "metadata.json"; };
  write("metadata.json");
  EXPECT_FALSE(watch.changed(ours));
  write("metadata.json");
  write("model");
  EXPECT_TRUE(watch.changed(ours));
}

TEST_F(FolderWatchTest, a_folder_may_come_later) {
  FolderWatch watch(folder + "/later");
  std::filesystem::create_directories(folder + "/later");
  write("later/a");
  EXPECT_FALSE(watch.changed(nothing));
  watch.enter();
  write("later/a");
  EXPECT_TRUE(watch.changed(nothing));
}

}  // namespace
}  // namespace smd
