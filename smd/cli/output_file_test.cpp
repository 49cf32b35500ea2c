#include "smd/cli/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace smd::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFile : public testing::Test {
 protected:
  OutputFile() { fs::create_directories(folder); }
  ~OutputFile() override { fs::remove_all(folder); }
  static std::string text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
  }
  const std::string folder = testing::TempDir() + "/smd_output_file_" + std::to_string(getpid());
};

TEST_F(OutputFile, a_file_is_replaced_whole_and_nothing_else_is_left) {
  ASSERT_TRUE(write_output_file(folder + "/a.html", "first, and longer").ok());
  ASSERT_TRUE(write_output_file(folder + "/a.html", "second").ok());
  EXPECT_EQ(text(folder + "/a.html"), "second");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(OutputFile, folders_are_made_and_links_stay) {
  ASSERT_TRUE(write_output_file(folder + "/new/a.html", "x").ok());
  fs::create_symlink(folder + "/new/a.html", folder + "/link.html");
  ASSERT_TRUE(write_output_file(folder + "/link.html", "y").ok());
  EXPECT_TRUE(fs::is_symlink(folder + "/link.html"));
  EXPECT_EQ(text(folder + "/new/a.html"), "y");
}

TEST_F(OutputFile, devices_are_written_to_and_stay_devices) {
  fs::create_symlink("/dev/null", folder + "/device");
  EXPECT_TRUE(write_output_file(folder + "/device", "x").ok());
  EXPECT_TRUE(fs::is_character_file(folder + "/device"));
}

TEST_F(OutputFile, directories_are_refused) {
  const Status status = write_output_file(folder, "x");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr("as it is a directory: " + folder));
  EXPECT_FALSE(write_output_file("", "x").ok());
}

}  // namespace
}  // namespace smd::cli
