#include "smd/storage/copy.h"

#include <gtest/gtest.h>

namespace smd::storage {
namespace {

TEST(CopyFile, moves_every_byte) {
  const auto from = memory_storage();
  const auto to = memory_storage();
  for (const size_t size : {size_t{0}, size_t{5}, (size_t{4} << 20) + 3, size_t{8} << 20}) {
    Bytes content(size);
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<std::byte>(i * 7 + i / 256);
    ASSERT_TRUE(from->put("a/b", content, Put::always, {}).ok());
    EXPECT_EQ(*copy_file(*from, *to, "a/b"), size);
    EXPECT_TRUE(*read_all(*to, "a/b") == content);
  }
  EXPECT_EQ(copy_file(*from, *to, "nothing").error().code, ErrorCode::not_found);
}

TEST(ArrivalRank, puts_indexes_after_data_and_marks_last) {
  EXPECT_EQ(arrival_rank("events/000000000001/x.tfevents"), 0);
  EXPECT_EQ(arrival_rank("collections/000000000/worker_0_collections.json"), 0);
  EXPECT_EQ(arrival_rank("index/000000000/000000000001_worker_0.json"), 1);
  EXPECT_EQ(arrival_rank(".smdebug/ended/worker_0"), 2);
  EXPECT_EQ(arrival_rank("training_job_end.ts"), 2);
}

}  // namespace
}  // namespace smd::storage
