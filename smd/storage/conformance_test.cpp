#include "smd/storage/internal/conformance.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "smd/storage/subfolder.h"

namespace smd::storage {
namespace {

std::shared_ptr<Storage> make_subfolder() { return subfolder_storage(memory_storage(), "a/b"); }

std::shared_ptr<Storage> make_local() {
  static int count = 0;
  const std::string root = testing::TempDir() + "/smd_storage_" + std::to_string(getpid()) + "_" +
                           std::to_string(count++);
  std::filesystem::remove_all(root);
  return local_storage(root + "/");
}

// Set to s3://bucket/prefix, beside what reaches a server: the suite runs against it, too.
constexpr const char* kS3Variable = "SMD_TEST_S3_URI";

std::shared_ptr<Storage> make_s3() {
  static int count = 0;
  const std::string root = std::getenv(kS3Variable);
  return *open_storage(root + "/" + std::to_string(getpid()) + "_" + std::to_string(count++));
}

std::vector<StorageFactory> servers() {
  if (std::getenv(kS3Variable) == nullptr) return {};
  return {&make_s3};
}

using Strings = std::vector<std::string>;

TEST_P(StorageConformance, a_file_appears_when_it_is_committed) {
  auto file = storage->create("a/b/c.txt", {});
  ASSERT_TRUE(file.ok());
  const ByteSpan pieces[] = {as_bytes("hel"), {}, as_bytes("lo")};
  EXPECT_TRUE((*file)->append(pieces).ok());
  EXPECT_EQ(storage->stat("a/b/c.txt").error().code, ErrorCode::not_found);
  EXPECT_EQ(paths(""), Strings{});
  EXPECT_TRUE((*file)->commit().ok());
  EXPECT_EQ(text("a/b/c.txt"), "hello");
  EXPECT_EQ(storage->stat("a/b/c.txt")->size_bytes, 5);
}

TEST_P(StorageConformance, an_abandoned_file_leaves_nothing) {
  {
    auto file = storage->create("x", {});
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE((*file)->append({{as_bytes("abc")}}).ok());
  }
  EXPECT_EQ(paths(""), Strings{});
}

TEST_P(StorageConformance, put_replaces_or_refuses) {
  EXPECT_TRUE(*storage->put("x", as_bytes("1"), Put::always, {}));
  EXPECT_TRUE(*storage->put("x", as_bytes("2"), Put::always, {.durable = true}));
  EXPECT_FALSE(*storage->put("x", as_bytes("3"), Put::if_absent, {}));
  EXPECT_TRUE(*storage->put("y/z", as_bytes("4"), Put::if_absent, {}));
  EXPECT_EQ(text("x"), "2");
  EXPECT_EQ(text("y/z"), "4");
  EXPECT_EQ(paths(""), (Strings{"x", "y/z"}));
}

TEST_P(StorageConformance, lists_sorted_below_a_folder_and_after_a_name) {
  for (const char* path : {"b/2", "a/1", "b/1", "ab/1"}) {
    ASSERT_TRUE(storage->put(path, {}, Put::always, {}).ok());
  }
  EXPECT_EQ(paths(""), (Strings{"a/1", "ab/1", "b/1", "b/2"}));
  EXPECT_EQ(paths("a"), (Strings{"a/1"}));
  EXPECT_EQ(paths("b", "b/1"), (Strings{"b/2"}));
  EXPECT_EQ(paths("nowhere"), Strings{});
}

TEST_P(StorageConformance, reads_pieces_and_stops_at_the_end) {
  ASSERT_TRUE(storage->put("x", as_bytes("0123456789"), Put::always, {}).ok());
  auto file = storage->open("x");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*(*file)->size(), 10u);
  Bytes out(4);
  EXPECT_EQ(*(*file)->read_at(3, out), 4u);
  EXPECT_EQ(as_text(out), "3456");
  EXPECT_EQ(*(*file)->read_at(8, out), 2u);
  EXPECT_EQ(*(*file)->read_at(100, out), 0u);
}

TEST_P(StorageConformance, removes_also_what_is_not_there) {
  ASSERT_TRUE(storage->put("x", {}, Put::always, {}).ok());
  EXPECT_TRUE(storage->remove("x").ok());
  EXPECT_TRUE(storage->remove("x").ok());
  EXPECT_EQ(read_all(*storage, "x").error().code, ErrorCode::not_found);
  EXPECT_TRUE(storage->sync().ok());
}

TEST_P(StorageConformance, refuses_paths_that_leave_the_root) {
  for (const char* path : {"", "/etc/passwd", "../x", "a/../../x", "a//b", "./a"}) {
    EXPECT_EQ(storage->open(path).error().code, ErrorCode::invalid_argument) << path;
    EXPECT_EQ(storage->create(path, {}).error().code, ErrorCode::invalid_argument) << path;
  }
}

TEST_P(StorageConformance, a_growing_file_is_seen_at_once_or_refused) {
  auto made = storage->append("grow/ing");
  if (!made.ok()) {
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    EXPECT_EQ(paths(""), Strings{});
    return;
  }
  AppendFile& file = **made;
  EXPECT_EQ(text("grow/ing"), "");
  const ByteSpan pieces[] = {as_bytes("ab"), {}, as_bytes("cd")};
  EXPECT_TRUE(file.append(pieces).ok());
  auto early = storage->open("grow/ing");
  ASSERT_TRUE(early.ok());
  EXPECT_TRUE(file.append({{as_bytes("ef")}}).ok());
  EXPECT_EQ(file.size(), 6u);
  EXPECT_EQ((*early)->size().value(), 6u) << "who has it open sees it grow";
  EXPECT_EQ(text("grow/ing"), "abcdef");
  EXPECT_EQ(paths("grow"), Strings{"grow/ing"});
  file.truncate(3);
  EXPECT_EQ(file.size(), 3u);
  EXPECT_EQ(text("grow/ing"), "abc");
  EXPECT_TRUE(file.append({{as_bytes("x")}}).ok());
  EXPECT_TRUE(file.sync().ok());
  EXPECT_EQ(text("grow/ing"), "abcx");
  EXPECT_FALSE(storage->append("grow/ing").ok()) << "a file grows under one writer";
  EXPECT_EQ(text("grow/ing"), "abcx");
  EXPECT_EQ(storage->append("../out").error().code, ErrorCode::invalid_argument);
}

TEST_P(StorageConformance,
       a_file_is_replaced_by_whoever_knows_its_version_or_versions_are_refused) {
  constexpr uint64_t kMost = 100;
  EXPECT_FALSE(storage->read_version("v/x", "", kMost).ok());
  const auto made = storage->replace("v/x", as_bytes("1"), "");
  if (!made.ok()) {
    EXPECT_EQ(made.error().code, ErrorCode::unsupported);
    EXPECT_EQ(storage->read_version("v/x", "", kMost).error().code, ErrorCode::unsupported);
    EXPECT_EQ(paths(""), Strings{});
    return;
  }
  EXPECT_EQ(storage->read_version("nothing", "", kMost).error().code, ErrorCode::not_found);
  ASSERT_TRUE(*made);
  EXPECT_EQ(text("v/x"), "1");
  EXPECT_FALSE(*storage->replace("v/x", as_bytes("other"), "")) << "there is one";
  const auto second = storage->replace("v/x", as_bytes("2"), **made);
  ASSERT_TRUE(second.ok() && *second);
  EXPECT_NE(**second, **made);
  EXPECT_FALSE(*storage->replace("v/x", as_bytes("late"), **made)) << "an old version";
  EXPECT_FALSE(*storage->replace("v/y", as_bytes("late"), **made)) << "there is none";
  EXPECT_EQ(text("v/x"), "2");
  const auto read = storage->read_version("v/x", **made, kMost);
  ASSERT_TRUE(read.ok() && *read);
  EXPECT_EQ(as_text((*read)->content), "2");
  EXPECT_EQ((*read)->version, **second);
  EXPECT_FALSE(*storage->read_version("v/x", **second, kMost)) << "nothing has changed";
  ASSERT_TRUE(storage->put("v/x", as_bytes("three"), Put::always, {}).ok());
  EXPECT_FALSE(*storage->replace("v/x", as_bytes("late"), **second));
  EXPECT_EQ(as_text((*storage->read_version("v/x", **second, kMost))->content), "three");
  EXPECT_EQ(storage->read_version("v/x", "", 4).error().code, ErrorCode::corrupt);
  ASSERT_TRUE(storage->put("v/empty", {}, Put::always, {}).ok());
  EXPECT_TRUE((*storage->read_version("v/empty", "", kMost))->content.empty());
}

INSTANTIATE_TEST_SUITE_P(Local, StorageConformance, testing::Values(&make_local));
INSTANTIATE_TEST_SUITE_P(Memory, StorageConformance, testing::Values(&memory_storage));
INSTANTIATE_TEST_SUITE_P(Subfolder, StorageConformance, testing::Values(&make_subfolder));
INSTANTIATE_TEST_SUITE_P(S3, StorageConformance, testing::ValuesIn(servers()));

TEST(LocalStorage, truncates_what_a_crash_left_behind) {
  const auto storage = make_local();
  const std::string root = storage->name();
  std::filesystem::create_directories(root);
  {
    std::unique_ptr<FILE, int (*)(FILE*)> f(fopen((root + "/x.tmp").c_str(), "w"), &fclose);
    fputs("stale stale stale", f.get());
  }
  ASSERT_TRUE(storage->put("x", as_bytes("new"), Put::always, {}).ok());
  EXPECT_EQ(as_text(*read_all(*storage, "x")), "new");
}

TEST(LocalStorage, goes_on_after_its_directory_vanished) {
  const auto storage = make_local();
  ASSERT_TRUE(storage->put("a/x", as_bytes("1"), Put::always, {}).ok());
  auto half = storage->create("a/y", {});
  ASSERT_TRUE(half.ok());
  std::filesystem::remove_all(storage->name());
  EXPECT_EQ((*half)->commit().error().code, ErrorCode::not_found);
  EXPECT_TRUE(storage->put("a/x", as_bytes("2"), Put::always, {}).ok());
}

TEST(ReadAll, refuses_what_is_larger_than_allowed_or_than_the_memory) {
  const auto storage = make_local();
  ASSERT_TRUE(storage->put("x", as_bytes("12345"), Put::always, {}).ok());
  EXPECT_EQ(as_text(*read_all(*storage, "x", 5)), "12345");
  EXPECT_EQ(read_all(*storage, "x", 4).error().code, ErrorCode::corrupt);
  std::filesystem::resize_file(storage->name() + "/x", uint64_t{1} << 42);  // takes no space
  EXPECT_FALSE(read_all(*storage, "x", kMostJsonBytes).ok());
}

TEST(OpenStorage, says_which_schemes_it_knows) {
  EXPECT_TRUE(open_storage("/tmp/x").ok());
  EXPECT_EQ((*open_storage("s3://bucket//x/"))->name(), "s3://bucket/x");
  EXPECT_EQ(open_storage("s3:/bucket/x").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(open_storage("gs://bucket/x").error().code, ErrorCode::unsupported);
  EXPECT_EQ(open_storage("").error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace smd::storage
