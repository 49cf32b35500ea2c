#include "smd/format/packed_file_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::format {
namespace {

TEST(PackedFileNameTest, names_are_read_back) {
  const std::string writer = writer_name("worker_0", incarnation_text(0x64f00aa112233, 0xabcdef));
  EXPECT_EQ(writer, "worker_0.064f00aa11223300abcdef");
  const PackedFileName expected{
      .writer = writer, .worker = "worker_0", .micros = 0x64f00aa112233, .sequence = 7};
  EXPECT_EQ(parse_packed_file_name(log_file_name(writer, 7)), expected);
  EXPECT_EQ(parse_packed_file_name(segment_file_name(writer, 7)), expected);
  EXPECT_EQ(log_file_name(writer, 7), "v2/log/worker_0.064f00aa11223300abcdef/00000007");
  EXPECT_THAT(segment_file_name(writer, 7),
              testing::MatchesRegex("v2/seg/[0-9a-f][0-9a-f]/worker_0.*/00000007"));
}

TEST(PackedFileNameTest, device_strings_and_dots_in_worker_names_survive) {
  const std::string incarnation = incarnation_text(1, 2);
  const auto device =
      parse_packed_file_name(log_file_name(writer_name("_job-worker_task-1", incarnation), 0));
  ASSERT_TRUE(device);
  EXPECT_EQ(device->worker, "/job:worker/task:1");
  const auto host =
      parse_packed_file_name(log_file_name(writer_name("worker.example.org", incarnation), 0));
  ASSERT_TRUE(host);
  EXPECT_EQ(host->worker, "worker.example.org");
}

TEST(PackedFileNameTest, later_incarnations_have_greater_texts) {
  EXPECT_LT(incarnation_text(0xFF, 9), incarnation_text(0x100, 0));
}

TEST(PackedFileNameTest, other_names_are_no_packed_files) {
  const std::string writer = writer_name("w", incarnation_text(1, 2));
  for (const std::string& path :
       {std::string("v2/log"), std::string("index/000000000/000000000000_w.json"),
        "v2/log/" + writer + "/7", "v2/log/" + writer + "/0000000x",
        std::string("v2/log/w.1/00000000"), "v2/seg/zz/" + writer + "/00000000",
        "v2/log/." + incarnation_text(1, 2) + "/00000000"}) {
    EXPECT_EQ(parse_packed_file_name(path), std::nullopt) << path;
  }
}

}  // namespace
}  // namespace smd::format
