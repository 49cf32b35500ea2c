#include "smd/repack/index_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/crc32c.h"
#include "smd/format/event.h"
#include "smd/format/index.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/tfrecord.h"
#include "smd/repack/exact_match.h"
#include "smd/trial/trial.h"
#include "tests/support/rich_run.h"

namespace smd {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class IndexExport : public testing::Test {
 protected:
  const std::shared_ptr<storage::Storage> run = storage::memory_storage();
  const RichRun recorded{run, true};

  IndexExportReport write() const {
    const auto report = export_index(run, {});
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : IndexExportReport{};
  }
};

TEST_F(IndexExport, each_place_in_the_index_holds_its_record) {
  recorded.record();
  recorded.end();
  const auto report = write();
  EXPECT_EQ(report.steps, 4u);
  EXPECT_EQ(report.workers, 2u);
  EXPECT_EQ(report.in_place + report.copied, 7u * 34);
  EXPECT_EQ(report.left_out, 0u);
  EXPECT_EQ(report.event_files, 2u);   // one per worker
  EXPECT_EQ(report.index_files, 14u);  // two for each of the 7 steps of a worker
  uint64_t checked = 0;
  for (const std::string& path : recorded.files("index")) {
    const auto index = format::parse_index(recorded.text(path), path);
    ASSERT_TRUE(index.ok()) << index.error().message;
    EXPECT_EQ(path.ends_with(".csv"), index->event_file.starts_with("v2/seg/")) << path;
    const std::string events = recorded.text(index->event_file);
    for (const auto& tensor : index->tensors) {
      const auto record = format::parse_record(
          as_bytes(events).subspan(tensor.offset, tensor.length), tensor.offset);
      ASSERT_TRUE(record.ok()) << record.error().message;
      EXPECT_EQ(record->footer, format::Footer::constant);
      EXPECT_EQ(tensor.crc32c, crc32c(record->payload));
      const auto event = format::parse_event(record->payload);
      ASSERT_TRUE(event.ok()) << event.error().message;
      EXPECT_EQ(event->name, tensor.name);
      ++checked;
    }
  }
  EXPECT_EQ(checked, report.in_place + report.copied);
}

TEST_F(IndexExport, the_run_is_read_as_a_packed_one_as_before) {
  recorded.record();
  const auto before = Trial::open(run, {.end_delay_secs = 0});
  ASSERT_TRUE((*before)->refresh().ok());
  write();
  const auto after = Trial::open(run, {.end_delay_secs = 0});
  ASSERT_TRUE(after.ok()) << after.error().message;
  ASSERT_TRUE((*after)->refresh().ok());
  EXPECT_EQ(*first_mismatch(**before, **after, [] {}), std::nullopt);
}

TEST_F(IndexExport, another_export_replaces_the_last_one) {
  recorded.record();
  write();
  const auto files = recorded.files("index");
  write();
  EXPECT_EQ(recorded.files("index"), files);
  // A later life of the worker records the first step again, with a number only.
  const auto sink = recorded.sink(RichRun::kWorkers[0]);
  ASSERT_TRUE(sink->begin_step({.step = 0, .mode = Mode::train}).ok());
  const float one = 1;
  ASSERT_TRUE(
      sink->tensor({.name = "n", .shape = Shape{}}, std::as_bytes(std::span(&one, 1))).ok());
  ASSERT_TRUE(sink->end_step().ok());
  write();
  EXPECT_EQ(recorded.files("index").size(), files.size() - 1);
  const std::string path = format::index_file_name(0, RichRun::kWorkers[0]);
  EXPECT_EQ(format::parse_index(recorded.text(path), path)->tensors.size(), 1u);
}

TEST_F(IndexExport, runs_in_the_original_layout_are_refused) {
  const RichRun plain(run, false);
  plain.record();
  const auto report = export_index(run, {});
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("not in the packed layout"));
  EXPECT_THAT(recorded.files("v2"), IsEmpty());
}

TEST_F(IndexExport, an_index_without_the_mark_is_still_another_run) {
  recorded.record();
  write();
  ASSERT_TRUE(run->remove(format::kExportMark).ok());
  const auto trial = Trial::open(run, {.end_delay_secs = 0});
  ASSERT_FALSE(trial.ok());
  EXPECT_THAT(trial.error().message, HasSubstr("which are two runs"));
  EXPECT_FALSE(export_index(run, {}).ok());
}

}  // namespace
}  // namespace smd
