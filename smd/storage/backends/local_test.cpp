#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "smd/storage/storage.h"

namespace smd::storage {
namespace {

namespace fs = std::filesystem;

std::string fresh_folder() {
  static int count = 0;
  const std::string folder =
      testing::TempDir() + "/smd_local_" + std::to_string(getpid()) + "_" + std::to_string(count++);
  fs::remove_all(folder);
  return folder;
}

class LocalStorageTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root + "/events");
    std::ofstream(folder + "/secret") << "secret";
    std::ofstream(root + "/events/a") << "inside";
  }
  std::vector<std::string> paths(const std::shared_ptr<Storage>& from) {
    std::vector<std::string> out;
    for (const FileInfo& file : *from->list("", "")) out.push_back(file.path);
    return out;
  }

  const std::string folder = fresh_folder();
  const std::string root = folder + "/run";
  const std::shared_ptr<Storage> storage = local_storage(root, {});
  const std::shared_ptr<Storage> everything = local_storage(root, {.everything = true});
};

using Strings = std::vector<std::string>;

TEST_F(LocalStorageTest, links_inside_are_followed_and_links_outside_are_not) {
  fs::create_symlink("a", root + "/events/b");
  fs::create_symlink(folder + "/secret", root + "/events/c");
  fs::create_symlink("../../secret", root + "/events/d");
  fs::create_symlink("nowhere", root + "/events/e");
  EXPECT_EQ(as_text(*read_all(*storage, "events/b")), "inside");
  for (const char* path : {"events/c", "events/d"}) {
    EXPECT_EQ(storage->open(path).error().code, ErrorCode::io) << path;
    EXPECT_EQ(storage->stat(path).error().code, ErrorCode::io) << path;
  }
  EXPECT_EQ(storage->open("events/e").error().code, ErrorCode::not_found);
  EXPECT_EQ(paths(storage), (Strings{"events/a", "events/b"}));
  EXPECT_EQ(paths(everything),
            (Strings{"events/a", "events/b", "events/c", "events/d", "events/e"}));
}

TEST_F(LocalStorageTest, a_linked_folder_is_neither_read_nor_written) {
  fs::create_directories(folder + "/elsewhere");
  std::ofstream(folder + "/elsewhere/x") << "secret";
  fs::create_directory_symlink(folder + "/elsewhere", root + "/index");
  EXPECT_FALSE(storage->list("index", "").ok());
  EXPECT_FALSE(storage->open("index/x").ok());
  EXPECT_FALSE(storage->put("index/y", as_bytes("1"), Put::always, {}).ok());
  EXPECT_FALSE(storage->put("index/new/y", as_bytes("1"), Put::if_absent, {}).ok());
  EXPECT_FALSE(storage->remove("index/x").ok());
  EXPECT_TRUE(fs::exists(folder + "/elsewhere/x"));
  EXPECT_EQ(paths(storage), Strings{"events/a"});
}

TEST_F(LocalStorageTest, links_in_a_circle_end) {
  fs::create_directory_symlink("..", root + "/events/up");
  fs::create_symlink("round", root + "/events/round");
  EXPECT_EQ(paths(storage), Strings{"events/a"});
  EXPECT_FALSE(storage->open("events/round").ok());
}

TEST_F(LocalStorageTest, a_link_in_place_of_the_temporary_file_is_not_written_through) {
  fs::create_symlink(folder + "/secret", root + "/events/x.tmp");
  EXPECT_FALSE(storage->put("events/x", as_bytes("1"), Put::always, {}).ok());
  EXPECT_EQ(fs::file_size(folder + "/secret"), 6u);
}

TEST_F(LocalStorageTest, a_pipe_in_place_of_the_temporary_file_is_not_waited_for) {
  ASSERT_EQ(::mkfifo((root + "/events/x.tmp").c_str(), 0600), 0);
  EXPECT_FALSE(storage->put("events/x", as_bytes("1"), Put::always, {}).ok());
}

TEST_F(LocalStorageTest, a_root_that_is_a_link_is_followed) {
  fs::create_directory_symlink("run", folder + "/link");
  const auto linked = local_storage(folder + "/link");
  EXPECT_EQ(as_text(*read_all(*linked, "events/a")), "inside");
  EXPECT_TRUE(linked->put("events/new/b", as_bytes("1"), Put::always, {}).ok());
  EXPECT_EQ(paths(storage), (Strings{"events/a", "events/new/b"}));
}

TEST_F(LocalStorageTest, what_is_not_a_file_is_not_opened) {
  ASSERT_EQ(::mkfifo((root + "/events/pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mknod((root + "/events/socket").c_str(), S_IFSOCK | 0600, 0), 0);
  fs::create_directories(root + "/events/folder");
  for (const char* path : {"events/pipe", "events/socket", "events/folder"}) {
    for (const Error& error : {storage->open(path).error(), storage->stat(path).error()}) {
      EXPECT_EQ(error.message, "This is not a file: " + root + "/" + path);
    }
  }
  EXPECT_FALSE(storage->list("events/a", "").ok());
  EXPECT_EQ(paths(everything), Strings{"events/a"});
}

TEST_F(LocalStorageTest, temporary_files_are_seen_by_those_who_ask) {
  std::ofstream(root + "/events/a.tmp") << "half";
  EXPECT_EQ(paths(storage), Strings{"events/a"});
  EXPECT_EQ(paths(everything), (Strings{"events/a", "events/a.tmp"}));
}

TEST_F(LocalStorageTest, linked_folders_are_not_watched) {
  fs::create_directories(folder + "/outside");
  fs::create_symlink(folder + "/outside", root + "/index");
  const std::vector<std::string> folders = {"index", "events"};
  const auto watch = storage->watch(folders);
  ASSERT_NE(watch, nullptr);
  std::ofstream(folder + "/outside/secret") << "x";
  std::ofstream(root + "/events/new") << "x";
  const auto changes = watch->changes();
  ASSERT_TRUE(changes.ok() && changes->has_value());
  for (const std::string& path : **changes) EXPECT_EQ(path, "events/new");
  EXPECT_FALSE((*changes)->empty());
}

}  // namespace
}  // namespace smd::storage
