#include "smd/hook/named_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace smd {
namespace {

class NamedFolderTest : public testing::Test {
 protected:
  ~NamedFolderTest() override { std::filesystem::remove(path); }
  Result<std::optional<NamedFolder>> read(const std::string& text) const {
    std::ofstream(path) << text;
    return read_named_folder(path);
  }
  const std::string path = testing::TempDir() + "/smd_named_" + std::to_string(getpid());
};

TEST_F(NamedFolderTest, the_file_names_the_folder) {
  EXPECT_EQ((*read(R"({ "LocalPath": "/my/checkpoint/path" })"))->folder, "/my/checkpoint/path");
  EXPECT_EQ((*read(R"({"S3OutputPath": "s3://b", "LocalPath": "x",})"))->folder, "x");
}

TEST_F(NamedFolderTest, a_file_without_the_key_is_told_from_no_file) {
  for (const char* text : {"{}", R"({"LocalPath": null})", R"({"LocalPath": ""})"}) {
    const auto named = read(text);
    ASSERT_TRUE(named.ok() && named->has_value()) << text;
    EXPECT_FALSE((*named)->folder.has_value()) << text;
  }
  EXPECT_FALSE(read_named_folder("/no/such/file.json")->has_value());
  EXPECT_FALSE(read_named_folder("no_such_file.json")->has_value());
}

TEST_F(NamedFolderTest, a_file_that_makes_no_sense_is_an_error_with_its_name) {
  for (const char* text : {"", "{", "[]", "3"}) {
    const auto named = read(text);
    ASSERT_FALSE(named.ok()) << text;
    EXPECT_THAT(named.error().message, testing::HasSubstr(path)) << text;
  }
  EXPECT_FALSE(read(R"({"LocalPath": 3})").ok());
}

}  // namespace
}  // namespace smd
