#include "smd/summary/summary_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/tfrecord.h"
#include "tests/support/faulty_storage.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr StepInfo kFirst{.step = 7, .mode = Mode::train, .mode_step = 7};
constexpr StepInfo kSecond{.step = 8, .mode = Mode::train, .mode_step = 8};
constexpr StepInfo kEval{.step = 9, .mode = Mode::eval, .mode_step = 0};

class SummaryFilesTest : public testing::Test {
 protected:
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const auto& file : *storage->list("", "")) out.push_back(file.path);
    return out;
  }
  size_t records(const std::string& path) const {
    const Bytes content = *storage::read_all(*storage, path);
    size_t count = 0;
    for (size_t at = 0; at < content.size(); ++count) {
      const auto record = format::parse_record(ByteSpan(content).subspan(at), at);
      EXPECT_TRUE(record.ok());
      if (!record.ok()) break;
      EXPECT_EQ(record->footer, format::Footer::checksum);
      at += record->size_bytes;
    }
    return count;
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(5);
  // Its files cannot grow.
  std::shared_ptr<storage::FaultyStorage> whole = std::make_shared<storage::FaultyStorage>(storage);
};

TEST_F(SummaryFilesTest, grow_one_file_per_mode) {
  SummaryFiles files({.storage = storage, .writer = "1_host"});
  files.scalar(kFirst, "scalar/loss", 0.5, 1);
  EXPECT_THAT(paths(), IsEmpty());
  ASSERT_TRUE(files.flush().ok());
  EXPECT_THAT(paths(), ElementsAre("TRAIN/000000000007_1_host.tfevents"));
  EXPECT_EQ(records(paths()[0]), 1u);
  files.scalar(kSecond, "scalar/loss", 0.25, 2);
  files.text(kEval, "notes", "*hello*", 3);
  ASSERT_TRUE(files.flush().ok());
  ASSERT_TRUE(files.close().ok());
  EXPECT_THAT(paths(), ElementsAre("EVAL/000000000009_1_host.tfevents",
                                   "TRAIN/000000000007_1_host.tfevents"));
  EXPECT_EQ(records(paths()[1]), 2u);
}

TEST_F(SummaryFilesTest, leave_out_histograms_without_buckets) {
  SummaryFiles files({.storage = storage, .writer = "w"});
  files.histogram(kFirst, "w", {.count = 3}, 1);
  ASSERT_TRUE(files.close().ok());
  EXPECT_THAT(paths(), IsEmpty());
  const Histogram three{.count = 3, .limits = {1, 2}, .counts = {0, 3}};
  files.histogram(kFirst, "w", view_of(three), 1);
  ASSERT_TRUE(files.close().ok());
  EXPECT_THAT(paths(), ElementsAre("TRAIN/000000000007_w.tfevents"));
}

TEST_F(SummaryFilesTest, are_written_whole_where_files_cannot_grow) {
  SummaryFiles files({.storage = whole, .writer = "w", .clock = clock});
  files.scalar(kFirst, "a", 1, 1);
  ASSERT_TRUE(files.flush().ok());
  EXPECT_THAT(paths(), IsEmpty());
  clock->advance(31);
  files.scalar(kSecond, "a", 2, 2);
  ASSERT_TRUE(files.flush().ok());
  EXPECT_THAT(paths(), ElementsAre("TRAIN/000000000007_w.tfevents"));
  EXPECT_EQ(records(paths()[0]), 2u);
  files.scalar({.step = 20, .mode = Mode::train}, "a", 3, 3);
  ASSERT_TRUE(files.close().ok());
  EXPECT_THAT(paths(),
              ElementsAre("TRAIN/000000000007_w.tfevents", "TRAIN/000000000020_w.tfevents"));
}

TEST_F(SummaryFilesTest, never_touch_what_is_there) {
  for (const auto& place : {storage, std::shared_ptr<storage::Storage>(whole)}) {
    SummaryFiles files({.storage = place, .writer = "w"});
    files.scalar(kFirst, "a", 1, 1);
    ASSERT_TRUE(files.close().ok());
  }
  EXPECT_THAT(paths(),
              ElementsAre("TRAIN/000000000007_w.1.tfevents", "TRAIN/000000000007_w.tfevents"));
}

TEST_F(SummaryFilesTest, keep_what_could_not_be_written) {
  SummaryFiles files({.storage = whole, .writer = "w", .roll_interval = {}, .clock = clock});
  whole->fail(true);
  files.scalar(kFirst, "a", 1, 1);
  EXPECT_FALSE(files.flush().ok());
  whole->fail(false);
  files.scalar(kSecond, "a", 2, 2);
  ASSERT_TRUE(files.flush().ok());
  EXPECT_EQ(records(paths().at(0)), 2u);
}

}  // namespace
}  // namespace smd
