#include "smd/gpu/kernel_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace smd::gpu {
namespace {

namespace fs = std::filesystem;

class KernelCacheTest : public testing::Test {
 protected:
  KernelCacheTest() {
    folder_ = fs::temp_directory_path() / ("smd_kernel_cache_" + std::to_string(getpid()));
    fs::remove_all(folder_);
  }
  ~KernelCacheTest() override { fs::remove_all(folder_); }

  fs::path only_file() const {
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
    return fs::directory_iterator(folder_)->path();
  }

  fs::path folder_;
  const Bytes code_{std::byte{1}, std::byte{0}, std::byte{'\n'}, std::byte{0xff}};
};

TEST_F(KernelCacheTest, gives_back_what_was_stored_under_the_same_key) {
  const KernelCache cache((folder_ / "made/on/demand").string());
  EXPECT_FALSE(cache.find("Float32-sm_90", "key").has_value());
  cache.store("Float32-sm_90", "key", code_);
  EXPECT_EQ(cache.find("Float32-sm_90", "key"), code_);
  EXPECT_FALSE(cache.find("Float32-sm_90", "other key").has_value());
  EXPECT_FALSE(cache.find("Float32-sm_80", "key").has_value());
}

TEST_F(KernelCacheTest, a_broken_file_is_no_file) {
  const KernelCache cache(folder_.string());
  cache.store("a", "key", code_);
  const fs::path path = only_file();
  const auto size = fs::file_size(path);
  for (uintmax_t length = 0; length < size; ++length) {
    cache.store("a", "key", code_);
    fs::resize_file(path, length);
    EXPECT_FALSE(cache.find("a", "key").has_value()) << length;
  }
  for (uintmax_t at = 0; at < size; ++at) {
    cache.store("a", "key", code_);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('\x7e');
    file.close();
    EXPECT_FALSE(cache.find("a", "key").has_value()) << at;
  }
}

TEST_F(KernelCacheTest, a_folder_that_cannot_be_written_is_no_cache) {
  std::ofstream(folder_) << "a file";
  const KernelCache cache((folder_ / "below").string());
  cache.store("a", "key", code_);
  EXPECT_FALSE(cache.find("a", "key").has_value());
  EXPECT_FALSE(KernelCache("").find("a", "key").has_value());
}

}  // namespace
}  // namespace smd::gpu
