#include "smd/format/file_name.h"

#include <gtest/gtest.h>

namespace smd::format {
namespace {

TEST(FileName, is_what_the_original_writes) {
  EXPECT_EQ(event_file_name(500, "worker_0"), "events/000000000500/000000000500_worker_0.tfevents");
  EXPECT_EQ(index_file_name(1000, "worker_1"), "index/000000001/000000001000_worker_1.json");
  EXPECT_EQ(collections_file_name("worker_0"), "collections/000000000/worker_0_collections.json");
}

TEST(FileName, gives_step_and_worker_back) {
  EXPECT_EQ(parse_step_file_name("a__b/index/000000001/000000001000_worker_1.json"),
            (IndexFileName{1000, "worker_1"}));
  EXPECT_EQ(parse_step_file_name("000000000499__job-worker_task-1.json"),
            (IndexFileName{499, "/job:worker/task:1"}));
  EXPECT_EQ(parse_step_file_name(event_file_name(7, "x_y")), (IndexFileName{7, "x_y"}));
}

TEST(FileName, foreign_names_are_not_parsed) {
  for (const char* name : {"", "x", "12.json", "_w.json", "12_.json", "-1_w.json", "12_w.json.tmp",
                           "1x_w.json", "99999999999999999999_w.json"}) {
    EXPECT_FALSE(parse_step_file_name(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace smd::format
